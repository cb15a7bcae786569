"""The sections of a study file that hold hyperparameters: ``arms``, ``rows``, ``space`` and ``fixed``."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, PlainValidator, create_model

from study.spec.domains import Domain, different
from study.spec.hyperparameters import HYPERPARAMETERS, Value
from study.spec.strict import Strict, refused


class _Section(Strict):
    """Keys of hyperparameters; a known one in the wrong section is told where it belongs."""

    @classmethod
    def expected_instead_of(cls, key: str) -> str:
        if key in HYPERPARAMETERS:
            return f"it in {' or '.join(HYPERPARAMETERS[key].sections)}: {key} cannot stand here"
        return super().expected_instead_of(key)


def _listed(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        if not value:
            raise refused(value, "at least one value")
        return list(value)
    return [value]


def _one_or_more(value_type: Any) -> Any:
    return Annotated[tuple[value_type, ...], BeforeValidator(_listed), AfterValidator(different)]


class _When(Strict):
    when: Annotated[dict[str, tuple[Value, ...]], PlainValidator(lambda given: arms_of(given))]


def _with_condition(domain: Domain) -> Domain:
    return domain.model_copy(update={"when": _When(when=domain.when).when})


def _section(name: str, fields: dict[str, Any]) -> type[_Section]:
    optional: dict[str, Any] = {key: (value_type, None) for key, value_type in fields.items()}
    return create_model(name, __base__=_Section, **optional)


_ARMS = _section("Arms", {key: _one_or_more(entry.value) for key, entry in HYPERPARAMETERS.items()})
_SPACE = _section(
    "Space",
    {
        key: Annotated[entry.domain, AfterValidator(_with_condition)]
        for key, entry in HYPERPARAMETERS.items()
        if entry.domain is not None
    },
)
_FIXED = _section("Fixed", {key: entry.value for key, entry in HYPERPARAMETERS.items() if entry.in_fixed})


def arms_of(given: Any) -> dict[str, tuple[Value, ...]]:
    """The values of each key, a single one as a tuple of one, in the order of the file."""
    return _in_given_order(_ARMS.model_validate(given), given)


def row_of(given: Any) -> dict[str, tuple[Value, ...]]:
    """One row: as :func:`arms_of`, with at least one key."""
    if given == {}:
        raise refused(given, "a mapping with keys such as backbone")
    return arms_of(given)


def space_of(given: Any) -> dict[str, Domain]:
    """The range or choice of each key, in the order of the file."""
    return _in_given_order(_SPACE.model_validate(given), given)


def fixed_of(given: Any) -> dict[str, Value]:
    """The value of each key, in the order of the file."""
    return _in_given_order(_FIXED.model_validate(given), given)


def _in_given_order(section: _Section, given: Any) -> dict[str, Any]:
    return {key: getattr(section, key) for key in given}
