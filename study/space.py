"""What is searched within one cell: sampled by Optuna or listed as a grid."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import optuna

from bimp.config import ConfigError
from study.spec.domains import Domain
from study.spec.hyperparameters import (
    PARENTS,
    Value,
    Values,
    exists,
    placement_of,
    placement_text,
    sampling_order,
)
from study.spec.source import value_text

_WIDTH_KEYS = (
    "placement",
    "layers",
    "budget",
    "hidden_dim",
    "heads",
    "num_clusters",
    "head",
    "semantics",
    "out_dim",
    "last_width",
    "edge_features",
    "attention_bias",
    "gated_attention_bias",
    "assignment_bias",
    "assignment_width",
    "metric_bias",
)
_RATE_KEYS = ("learning_rate", "min_lr")


@dataclass(frozen=True)
class Parameter:
    """One searched key."""

    key: str
    domain: Domain

    @property
    def all_values(self) -> Sequence[Value]:
        """Every value, in order; only for choices and ranges of whole numbers."""
        if self.domain.choices is not None:
            return self.domain.choices
        low, high = self.domain.bounds or (0, 0)
        return range(low, high + 1)


@dataclass(frozen=True)
class Space:
    """The searched keys of a cell, in the order of sampling, and the values that its arms and ``fixed`` give."""

    context: dict[str, Value]
    parameters: tuple[Parameter, ...]

    def is_active(self, parameter: Parameter, values: Values) -> bool:
        """Whether ``parameter`` is sampled once the ones before it have ``values``."""
        known = {**self.context, **values}
        return exists(parameter.key, known) and all(
            name in known and known[name] in allowed for name, allowed in parameter.domain.when.items()
        )


def space_of_cell(context: Values, domains: Mapping[str, Domain]) -> Space:
    """The part of a study's space that can matter in a cell whose arms and fixed values are ``context``."""
    kept: dict[str, Parameter] = {}
    for key in sampling_order(domains):
        domain = domains[key]
        # A parent that is itself searched here may take a value that lets the key exist.
        hopeful = {"placement": "dense", "gate": "bilateral"}
        known = {**context, **{parent: hopeful[parent] for parent in PARENTS.get(key, ()) if parent in kept}}
        reachable = all(
            name in kept or (name in context and context[name] in allowed) for name, allowed in domain.when.items()
        )
        if reachable and exists(key, known):
            kept[key] = Parameter(key, domain)
    return Space(dict(context), tuple(kept.values()))


def suggest(space: Space, trial: optuna.trial.BaseTrial) -> dict[str, Value]:
    """Sample a configuration, asking ``trial`` for the active keys only, each after those it depends on."""
    values: dict[str, Value] = {}
    for parameter in space.parameters:
        if space.is_active(parameter, values):
            values[parameter.key] = _suggest_one(parameter, trial)
    return values


def _suggest_one(parameter: Parameter, trial: optuna.trial.BaseTrial) -> Value:
    key, domain = parameter.key, parameter.domain
    if domain.bounds is None:
        chosen = trial.suggest_categorical(key, [_encode(value) for value in domain.choices or ()])
        return placement_of(str(chosen)) if key == "placement" else chosen
    low, high = domain.bounds
    log = domain.kind in ("log_uniform", "log_int")
    if domain.is_continuous:
        return float(trial.suggest_float(key, low, high, log=log))
    return int(trial.suggest_int(key, low, high, log=log))


def wrong_sample(space: Space, sampled: Mapping[str, Any]) -> str | None:
    """Which of the values ``sampled``, as Optuna holds them, its key cannot have, and what was expected; or None."""
    for parameter in space.parameters:
        expected = _expected_in_place_of(parameter, sampled[parameter.key]) if parameter.key in sampled else None
        if expected is not None:
            return f"{parameter.key}: found {value_text(sampled[parameter.key])}, expected {expected}"
    return None


def _expected_in_place_of(parameter: Parameter, value: Any) -> str | None:
    domain = parameter.domain
    if domain.bounds is None:
        choices = [_encode(choice) for choice in domain.choices or ()]
        known = any(value == choice and isinstance(value, bool) == isinstance(choice, bool) for choice in choices)
        return None if known else f"one of {', '.join(map(value_text, choices))}"
    low, high = domain.bounds
    is_number = isinstance(value, int | float if domain.is_continuous else int) and not isinstance(value, bool)
    # The logarithm of a bound and back is not always the bound.
    if is_number and (low <= value <= high or any(_is_close(value, bound) for bound in (low, high))):
        return None
    return f"a {'' if domain.is_continuous else 'whole '}number from {value_text(low)} to {value_text(high)}"


def _is_close(value: float, bound: float) -> bool:
    return isinstance(value, float) and math.isclose(value, bound)


def _encode(value: Any) -> Any:
    return placement_text(value) if isinstance(value, tuple) else value


def grid(space: Space) -> list[dict[str, Value]]:
    """Every configuration, the last key changing fastest; a key that is inactive is not varied.

    Raises:
        ConfigError: a key has a continuous range.
    """
    for parameter in space.parameters:
        if parameter.domain.is_continuous:
            raise ConfigError(parameter.key, "found a continuous range, expected values that a grid can list")
    return list(_combinations(space, lambda parameter: parameter.all_values))


def different_configurations(space: Space, most: int) -> int:
    """How many configurations can be sampled, up to ``most``; ``most`` where there is a continuous range."""
    if any(parameter.domain.is_continuous for parameter in space.parameters):
        return most
    return sum(1 for _ in islice(_combinations(space, lambda parameter: parameter.all_values), most))


def width_corners(space: Space) -> list[dict[str, Value]]:
    """Configurations among which the narrowest and the widest model are, and, of a given width, the least and largest.

    A width that is solved from a budget takes steps: beside :func:`between_corners` a model may be larger or smaller.
    """
    return _corners(space, _WIDTH_KEYS)


def between_corners(space: Space) -> list[str]:
    """Keys of ranges with whole numbers between their ends that decide the width or the number of parameters."""
    return [
        parameter.key
        for parameter in space.parameters
        if parameter.key in _WIDTH_KEYS and parameter.domain.bounds is not None and len(parameter.all_values) > 2
    ]


def rate_corners(space: Space) -> list[dict[str, Value]]:
    """Configurations with the least and the greatest learning rates."""
    return _corners(space, _RATE_KEYS)


def _corners(space: Space, keys: Sequence[str]) -> list[dict[str, Value]]:
    conditions: dict[str, list[Value]] = {}
    for parameter in space.parameters:
        for name, allowed in parameter.domain.when.items():
            conditions.setdefault(name, []).extend(allowed)

    def ends(parameter: Parameter) -> Sequence[Value]:
        values = parameter.domain.bounds or parameter.domain.choices or ()
        if parameter.key in conditions and parameter.domain.bounds is not None:
            named = conditions[parameter.key]
            return tuple(dict.fromkeys((*values, *named, *_ends_beside(parameter.all_values, named))))
        decides = parameter.key in keys or parameter.key in conditions or parameter.key == "gate"
        return values if decides else values[:1]

    return list(_combinations(space, ends))


def _ends_beside(numbers: Sequence[Value], named: Sequence[Value]) -> list[Value]:
    """The first and the last of ``numbers`` that no condition names: there its keys have no value."""
    ways = (iter(numbers), reversed(numbers))
    return [number for way in ways for number in islice((each for each in way if each not in named), 1)]


def _combinations(
    space: Space, options: Callable[[Parameter], Sequence[Value]], values: Values | None = None, start: int = 0
) -> Iterator[dict[str, Value]]:
    values = values or {}
    if start == len(space.parameters):
        yield dict(values)
        return
    parameter = space.parameters[start]
    if not space.is_active(parameter, values):
        yield from _combinations(space, options, values, start + 1)
        return
    for value in options(parameter):
        yield from _combinations(space, options, {**values, parameter.key: value}, start + 1)
