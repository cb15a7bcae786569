"""What must hold between the keys of a study; each check raises at the key that is to be mended."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

from bimp.config import ConfigError, gated_layers
from bimp.tasks import task_of
from study.spec.domains import Domain
from study.spec.hyperparameters import BACKBONE_OF, GATE_KEYS, Value, exists, sampling_order
from study.spec.source import KeyPath, value_text
from study.spec.strict import refused_at

if TYPE_CHECKING:
    from study.spec.study_file import StudySpec


def check_study(spec: StudySpec) -> None:
    """Check a study whose keys are known and whose values have the right types.

    Raises:
        ValidationError: with the path of the key, what was found and what was expected.
    """
    _check_one_section_each(spec)
    _check_required(spec)
    _check_settings_are_used(spec)
    _check_gated_layers(spec)
    for key, domain in spec.space.items():
        _check_conditions(spec, key, domain)
    _check_search(spec)
    _check_epochs(spec)
    _check_folds(spec)


def path_of(spec: StudySpec, key: str) -> KeyPath:
    """Where the hyperparameter ``key`` stands; just its name if it stands nowhere."""
    for section in ("arms", "space", "fixed"):
        if key in getattr(spec, section):
            return (section, key)
    return (key,)


def options(spec: StudySpec, key: str) -> Iterator[tuple[KeyPath, Value]]:
    """Every value that the study gives ``key``, with its path; of a range its two ends."""
    path = path_of(spec, key)
    if path[0] == "fixed":
        yield path, spec.fixed[key]
    elif path[0] == "arms":
        yield from (((*path, index), value) for index, value in enumerate(spec.arms[key]))
    elif path[0] == "space":
        domain = spec.space[key]
        for index, value in enumerate(domain.bounds or domain.choices or ()):
            yield (*path, domain.kind, index), value


def _check_one_section_each(spec: StudySpec) -> None:
    first: dict[str, str] = {}
    for section in ("arms", "space", "fixed"):
        for key in getattr(spec, section):
            if key in first:
                raise refused_at((section, key), f"it in {first[key]} too", "it in one section only")
            first[key] = section


def _check_required(spec: StudySpec) -> None:
    for key in ("dataset", "backbone"):
        if key not in spec.arms:
            raise refused_at(("arms", key), "nothing", f"one {key} or a list of them")
    if path_of(spec, "layers") == ("layers",):
        raise refused_at(("arms", "layers"), "nothing", "the number of layers, here or in space or fixed")
    budget, hidden_dim = path_of(spec, "budget"), path_of(spec, "hidden_dim")
    if len(budget) > 1 and len(hidden_dim) > 1:
        raise refused_at(hidden_dim, f"it beside {budget[0]}.budget", "either budget or hidden_dim")
    if len(budget) == len(hidden_dim) == 1:
        raise refused_at(("arms", "budget"), "nothing", "budget or hidden_dim, here or in space or fixed")
    if _can_be_gated(spec) and path_of(spec, "num_clusters") == ("num_clusters",):
        raise refused_at(
            ("arms", "num_clusters"), "nothing", "the number of clusters, here or in space or fixed: layers are gated"
        )


def _can_be_gated(spec: StudySpec) -> bool:
    return any(value != "none" for _, value in options(spec, "placement"))


def _check_settings_are_used(spec: StudySpec) -> None:
    for key in GATE_KEYS:
        path = path_of(spec, key)
        if len(path) > 1 and not _can_be_gated(spec):
            raise refused_at(path, "a gate setting", "none: every cell is vanilla (placement none)")
    if not any(exists("sigma_m", {"placement": "dense", "gate": gate}) for gate in _values(spec, "gate", "bilateral")):
        path = path_of(spec, "sigma_m")
        if len(path) > 1:
            raise refused_at(path, "a setting of the bilateral gate", "none: every gate is uniform")
    for key, backbone in BACKBONE_OF.items():
        if len(path_of(spec, key)) > 1 and backbone not in spec.arms["backbone"]:
            raise refused_at(
                path_of(spec, key), f"a setting of {backbone}", f"none: no cell has the backbone {backbone}"
            )


def _values(spec: StudySpec, key: str, default: Value) -> list[Value]:
    return [value for _, value in options(spec, key)] or [default]


def _check_gated_layers(spec: StudySpec) -> None:
    """Every placement with the least and the most layers; conditions may part them, so then planning tells."""
    if any(spec.space[key].when for key in ("placement", "layers") if key in spec.space):
        return
    for (path, placement), (_, layers) in product(options(spec, "placement"), options(spec, "layers")):
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


def _check_conditions(spec: StudySpec, key: str, domain: Domain) -> None:
    order = sampling_order(spec.space)
    for name, values in domain.when.items():
        path = ("space", key, "when", name)
        section = path_of(spec, name)[0]
        if section == name:
            raise refused_at(path, f"a condition on {name}", "a key that stands in arms, space or fixed")
        if section == "space" and order.index(name) >= order.index(key):
            raise refused_at(path, f"a condition on {name}", f"a key that is sampled before {key}")
        _check_possible(spec, name, path, values)


def _check_possible(spec: StudySpec, name: str, path: KeyPath, values: tuple[Any, ...]) -> None:
    """Whether a condition names values that ``name`` can have."""
    possible: list[Any] = [value for _, value in options(spec, name)]
    is_range = name in spec.space and spec.space[name].bounds is not None
    for index, value in enumerate(values):
        if not (possible[0] <= value <= possible[-1] if is_range else value in possible):
            allowed = (" to " if is_range else ", ").join(map(value_text, possible))
            raise refused_at((*path, index), value_text(value), f"a value that {name} can have: {allowed}")


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
    elif search.trials is None and spec.space:
        raise refused_at(("search", "trials"), "nothing", "the number of search trials of a cell")


def _refuse_in_grid(key: str, domain: Domain) -> None:
    low, high = domain.bounds or (0.0, 0.0)
    middle = (low * high) ** 0.5 if domain.kind == "log_uniform" else (low + high) / 2
    instead = ", ".join(f"{value:.4g}" for value in (low, middle, high))
    raise refused_at(
        ("space", key, domain.kind), "a continuous range", f"values that a grid can list, such as choice: [{instead}]"
    )


def _check_epochs(spec: StudySpec) -> None:
    if spec.search is None or spec.search.asha is None:
        return
    grace = spec.search.asha.grace_epochs
    protocols = [task_of(str(dataset)).protocol.max_epochs for dataset in spec.arms["dataset"]]
    least = min([value for _, value in options(spec, "max_epochs") if isinstance(value, int)] or protocols)
    if grace > least:
        raise refused_at(("search", "asha", "grace_epochs"), str(grace), f"at most max_epochs = {least}")


def _check_folds(spec: StudySpec) -> None:
    tasks = [task_of(str(dataset)) for dataset in spec.arms["dataset"]]
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
