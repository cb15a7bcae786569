"""What must hold between the keys of a study; each check raises at the key that is to be mended."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

from pydantic import ValidationError

from bimp.config import ConfigError, gated_layers
from bimp.tasks import task_of
from study.spec.domains import Domain
from study.spec.hyperparameters import BACKBONE_OF, GATE_KEYS, PARENTS, exists, sampling_order
from study.spec.rows import Variant, options, path_of, variants
from study.spec.source import KeyPath, path_text, value_text
from study.spec.strict import refused_at
from study.spec.study_spec import StudySpec


def check_study(spec: StudySpec) -> None:
    """Check a study whose keys are known and whose values have the right types.

    Raises:
        ValidationError: with the path of the key, what was found and what was expected.
    """
    _check_one_section_each(spec)
    rows = variants(spec)
    for variant in rows:
        _check_required(variant)
    _check_settings_are_used(rows)
    for variant in rows:
        _check_gated_layers(variant)
    for key in spec.space:
        _check_conditions(rows, key)
    _check_search(spec)
    for variant in rows:
        _check_epochs(spec, variant)
    _check_folds(spec, rows)
    _check_resources(spec)


def _check_one_section_each(spec: StudySpec) -> None:
    first: dict[str, str] = {}
    for section in ("arms", "space", "fixed"):
        for key in getattr(spec, section):
            if key in first:
                raise refused_at((section, key), f"it in {first[key]} too", "it in one section only")
            first[key] = section
            if spec.rows and all(key in row for row in spec.rows):
                raise refused_at((section, key), "it in every row too", f"it in {section} or in rows")


def _check_required(variant: Variant) -> None:
    nowhere: KeyPath = ("arms",) if variant.row is None else ("rows", variant.row)
    for key in ("dataset", "backbone"):
        if key not in variant.arms:
            raise refused_at((*nowhere, key), "nothing", f"one {key} or a list of them")
    if path_of(variant, "layers") == ("layers",):
        raise refused_at((*nowhere, "layers"), "nothing", "the number of layers, here or in space or fixed")
    budget, hidden_dim = path_of(variant, "budget"), path_of(variant, "hidden_dim")
    if len(budget) > 1 and len(hidden_dim) > 1:
        raise refused_at(hidden_dim, f"it beside {path_text(budget)}", "either budget or hidden_dim")
    if len(budget) == len(hidden_dim) == 1:
        raise refused_at((*nowhere, "budget"), "nothing", "budget or hidden_dim, here or in space or fixed")
    if _can_be_gated(variant) and path_of(variant, "num_clusters") == ("num_clusters",):
        raise refused_at(
            (*nowhere, "num_clusters"), "nothing", "the number of clusters, here or in space or fixed: layers are gated"
        )


def _can_be_gated(variant: Variant) -> bool:
    return any(value != "none" for _, value in options(variant, "placement"))


def _can_be_bilateral(variant: Variant) -> bool:
    gates = [value for _, value in options(variant, "gate")] or ["bilateral"]
    return any(exists("sigma_m", {"placement": "dense", "gate": gate}) for gate in gates)


def _check_settings_are_used(rows: Sequence[Variant]) -> None:
    for key in GATE_KEYS:
        found, expected = "a gate setting", "none: every cell is vanilla (placement none)"
        _refuse_unused(rows, key, _can_be_gated, found, expected)
    found, expected = "a setting of the bilateral gate", "none: every gate is uniform"
    _refuse_unused(rows, "sigma_m", _can_be_bilateral, found, expected)
    for key, backbone in BACKBONE_OF.items():
        found, expected = f"a setting of {backbone}", f"none: no cell has the backbone {backbone}"
        _refuse_unused(rows, key, partial(_has_backbone, backbone), found, expected)


def _has_backbone(backbone: str, variant: Variant) -> bool:
    return backbone in variant.arms["backbone"]


def _refuse_unused(
    rows: Sequence[Variant], key: str, is_used: Callable[[Variant], bool], found: str, expected: str
) -> None:
    """Refuse ``key`` where it stands, if it is used in none of the rows that read it there."""
    used: dict[KeyPath, bool] = {}
    for variant in rows:
        path = path_of(variant, key)
        if len(path) > 1:
            used[path] = used.get(path, False) or is_used(variant)
    for path, is_used_there in used.items():
        if not is_used_there:
            raise refused_at(path, found, expected)


def _check_gated_layers(variant: Variant) -> None:
    """Every placement with the least and the most layers; conditions may part them, so then planning tells."""
    if any(variant.space[key].when for key in ("placement", "layers") if key in variant.space):
        return
    for (path, placement), (_, layers) in product(options(variant, "placement"), options(variant, "layers")):
        _check_placement(path, placement, layers)


def _check_placement(path: KeyPath, placement: Any, layers: Any) -> None:
    try:
        gated_layers(placement, layers)
    except ConfigError as error:
        if isinstance(placement, tuple):
            expected = f"different layers from 1 to {layers}"
        else:
            expected = f"layers >= 2: {placement} gates no layer of a network of {layers}"
        raise refused_at(path, value_text(placement), expected) from error


def _check_conditions(rows: Sequence[Variant], key: str) -> None:
    """The conditions on a searched key must be able to hold in one of the rows that search it."""
    refusals: list[ValidationError] = []
    for variant in rows:
        if key not in variant.space:
            continue
        try:
            _check_conditions_in(variant, key, variant.space[key])
        except ValidationError as error:
            refusals.append(error)
        else:
            return
    if refusals:
        raise refusals[0]


def _check_conditions_in(variant: Variant, key: str, domain: Domain) -> None:
    order = sampling_order(variant.space)
    for name, values in domain.when.items():
        path = ("space", key, "when", name)
        section = path_of(variant, name)[0]
        if section == name:
            raise refused_at(path, f"a condition on {name}", "a key that stands in arms, space or fixed")
        if section == "space" and order.index(name) >= order.index(key):
            raise refused_at(path, f"a condition on {name}", f"a key that is sampled before {key}")
        if section == "space" and variant.space[name].is_continuous:
            # It would hold in no trial, and the key would never be searched.
            expected = f"a key of single values; make {name} a choice"
            raise refused_at(path, f"a condition on {name}, which has a continuous range", expected)
        _check_possible(variant, name, path, values)
    if domain.when:
        _check_possible_together(variant, key, domain)


def _check_possible_together(variant: Variant, key: str, domain: Domain) -> None:
    """Whether the key, and all that its conditions name, exist in one trial."""
    names = (*domain.when, key)
    deciding = dict.fromkeys(parent for name in names for parent in PARENTS.get(name, ()))
    values = {name: domain.when.get(name) or tuple(value for _, value in options(variant, name)) for name in deciding}
    given = {name: possible for name, possible in values.items() if possible}
    trials = (dict(zip(given, combination, strict=True)) for combination in product(*given.values()))
    if not any(all(exists(name, trial) for name in names) for trial in trials):
        joined = f"{', '.join(names[:-1])} and {key}"
        raise refused_at(
            ("space", key, "when"), "conditions that no trial meets", f"values with which {joined} exist together"
        )


def _check_possible(variant: Variant, name: str, path: KeyPath, values: tuple[Any, ...]) -> None:
    """Whether a condition names values that ``name`` can have."""
    possible: list[Any] = [value for _, value in options(variant, name)]
    is_range = name in variant.space and variant.space[name].bounds is not None
    for index, value in enumerate(values):
        if not (possible[0] <= value <= possible[-1] if is_range else value in possible):
            allowed = (" to " if is_range else ", ").join(map(value_text, possible))
            raise refused_at((*path, index), value_text(value), f"a value that {name} can have: {allowed}")


MOST_GRID_TRIALS = 100_000
"""A grid with more combinations is a slip; it would be listed in memory."""


def _check_search(spec: StudySpec) -> None:
    search = spec.search
    if search is None:
        if spec.space:
            raise refused_at(("search",), "nothing", "a mapping with trials: space is not empty")
        return
    if search.sampler == "grid":
        if search.trials is not None:
            raise refused_at(("search", "trials"), str(search.trials), "none: a grid runs every combination")
        for key, domain in spec.space.items():
            if domain.is_continuous:
                _refuse_in_grid(key, domain)
        _check_grid_size(spec)
    elif search.trials is None and spec.space:
        raise refused_at(("search", "trials"), "nothing", "the number of search trials of a cell")


def _check_grid_size(spec: StudySpec) -> None:
    combinations = math.prod(_number_of_values(domain) for domain in spec.space.values())
    if combinations > MOST_GRID_TRIALS:
        raise refused_at(
            ("search", "sampler"),
            f"a grid of {combinations:,} combinations",
            f"at most {MOST_GRID_TRIALS:,}, or another sampler with trials",
        )


def _number_of_values(domain: Domain) -> int:
    if domain.bounds is not None:
        low, high = domain.bounds
        return int(high) - int(low) + 1
    return len(domain.choices or ())


def _refuse_in_grid(key: str, domain: Domain) -> None:
    low, high = domain.bounds or (0.0, 0.0)
    middle = (low * high) ** 0.5 if domain.kind == "log_uniform" else (low + high) / 2
    instead = ", ".join(f"{value:.4g}" for value in (low, middle, high))
    raise refused_at(
        ("space", key, domain.kind), "a continuous range", f"values that a grid can list, such as choice: [{instead}]"
    )


def _check_epochs(spec: StudySpec, variant: Variant) -> None:
    if spec.search is None or spec.search.asha is None:
        return
    grace = spec.search.asha.grace_epochs
    protocols = [task_of(str(dataset)).protocol.max_epochs for dataset in variant.arms["dataset"]]
    least = min([value for _, value in options(variant, "max_epochs") if isinstance(value, int)] or protocols)
    if grace > least:
        raise refused_at(("search", "asha", "grace_epochs"), str(grace), f"at most max_epochs = {least}")


def _check_folds(spec: StudySpec, rows: Sequence[Variant]) -> None:
    datasets = dict.fromkeys(str(dataset) for variant in rows for dataset in variant.arms["dataset"])
    tasks = [task_of(dataset) for dataset in datasets]
    limit = min((task.folds for task in tasks if task.folds is not None), default=None)
    asked: list[tuple[KeyPath, str | int]] = []
    if "folds" in spec.confirm.model_fields_set:
        folds = spec.confirm.folds
        path: KeyPath = ("confirm", "folds")
        asked += [(path, folds)] if folds == "all" else [((*path, index), fold) for index, fold in enumerate(folds)]
    if spec.search is not None and "fold" in spec.search.model_fields_set:
        asked.append((("search", "fold"), spec.search.fold))
    for where, fold in asked:
        if limit is None:
            names = ", ".join(task.dataset for task in tasks)
            raise refused_at(where, value_text(fold) if fold != "all" else "all", f"none: {names} has no folds")
        if isinstance(fold, int) and fold >= limit:
            raise refused_at(where, str(fold), f"a fold from 0 to {limit - 1}")


def _check_resources(spec: StudySpec) -> None:
    resources = spec.resources
    if "max_trials_per_gpu" in resources.model_fields_set and resources.gpus_per_trial != "auto":
        path = ("resources", "max_trials_per_gpu")
        found = f"{resources.max_trials_per_gpu} beside gpus_per_trial: {resources.gpus_per_trial:g}"
        raise refused_at(path, found, "none: it limits gpus_per_trial: auto")
