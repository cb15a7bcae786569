"""What a study would run, worked out without running it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from bimp.budget import parameters_of
from bimp.config import ConfigError, ModelConfig, TrialConfig
from bimp.tasks import TaskSpec, task_of
from study.configuration import configuration
from study.plan.cells import Cell, Extent, StudyPlan
from study.plan.crossing import Arms, cross
from study.plan.rungs import milestones
from study.space import grid, rate_corners, width_corners
from study.spec import StudySpec
from study.spec.hyperparameters import Value, Values, exists
from study.spec.rows import options, path_of
from study.spec.source import SpecError, value_text

T = TypeVar("T")

_OF_MODEL = ("heads", "readout", "out_dim")
_OF_TRAINING = (
    *("batch_size", "learning_rate", "lr_factor", "lr_patience", "min_lr"),
    *("max_epochs", "time_limit_s", "precision"),
)


def plan(spec: StudySpec) -> StudyPlan:
    """The plan of ``spec``; the extreme configurations of every cell are resolved on the way.

    Raises:
        SpecError: a configuration that can be sampled cannot be built, as where a budget is too small for it.
    """
    cells = tuple(_planned(spec, arms) for arms in cross(spec))
    return StudyPlan(name=spec.name, caption=spec.caption, cells=cells)


def _planned(spec: StudySpec, arms: Arms) -> Cell:
    task = task_of(str(arms.values["dataset"]))
    search, confirm = spec.search, spec.confirm
    probed = [_probe(spec, arms, values) for values in width_corners(arms.space) + rate_corners(arms.space)]
    max_epochs = probed[0].config.train.max_epochs
    folds = None if task.folds is None else tuple(range(task.folds)) if confirm.folds == "all" else confirm.folds
    return Cell(
        id=arms.id,
        arms=arms.values,
        settings=arms.settings,
        space=arms.space,
        hidden_dim=Extent.of(probe.config.model.hidden_dim for probe in probed),
        params=Extent.of(probe.params for probe in probed),
        trials=_trials(spec, arms),
        search_seed=confirm.seeds[0] if search is None else search.seed,
        search_fold=None if task.folds is None else 0 if search is None else search.fold,
        seeds=confirm.seeds,
        folds=folds,
        semantics=_same([probe.config.model.semantics for probe in probed]),
        departures=_common([probe.config.departures for probe in probed], arms),
        other_settings=_common([_other_settings(probe.config) for probe in probed], arms),
        max_epochs=max_epochs,
        rungs=milestones(search.asha if search is not None and arms.space.parameters else None, max_epochs),
    )


def _trials(spec: StudySpec, arms: Arms) -> int:
    if spec.search is None or not arms.space.parameters:
        return 0
    return len(grid(arms.space)) if spec.search.sampler == "grid" else spec.search.trials or 0


@dataclass(frozen=True)
class _Probe:
    config: TrialConfig
    params: int


def _probe(spec: StudySpec, arms: Arms, values: Values) -> _Probe:
    """What one configuration of a cell comes to."""
    try:
        config = configuration({**arms.variant.fixed, **arms.values, **values}, seed=0, fold=None)
        params = _count(config.model, task_of(config.dataset))
    except ConfigError as error:
        raise _located(spec, arms, values, error) from error
    return _Probe(config, params)


def _same(values: Sequence[T]) -> T | None:
    """The value, if all are the same."""
    return values[0] if all(value == values[0] for value in values) else None


def _common(settings: Sequence[dict[str, T]], arms: Arms) -> dict[str, T]:
    """The settings that no search changes."""
    searched = {parameter.key for parameter in arms.space.parameters}
    return {
        name: value
        for name, value in settings[0].items()
        if name not in searched and all(name in other and other[name] == value for other in settings)
    }


def _other_settings(config: TrialConfig) -> dict[str, Value]:
    """What an arm or a fixed value can give beside gate, size, encodings and semantics, as it exists in the trial."""
    known = {"placement": config.model.placement, "backbone": config.model.backbone}
    return {
        name: getattr(part, name)
        for part, names in ((config.model, _OF_MODEL), (config.train, _OF_TRAINING))
        for name in names
        if exists(name, known)
    }


@lru_cache(maxsize=4096)
def _count(model: ModelConfig, task: TaskSpec) -> int:
    return parameters_of(model, task)


def _located(spec: StudySpec, arms: Arms, values: Values, error: ConfigError) -> SpecError:
    variant, key, message = arms.variant, error.key, error.message
    if path_of(variant, key) == (key,) and key == "min_lr":
        # It is the protocol's; what the study can mend is the learning rate.
        key, message = "learning_rate", f"min_lr: {message}"
    if path_of(variant, key) == (key,) and key == "budget":
        # A width that a condition leaves without a value is missed as a budget; the study has but one of them.
        key = "hidden_dim"
    value = {**variant.fixed, **arms.values, **values}.get(key)
    path = next((path for path, option in options(variant, key) if option == value), path_of(variant, key))
    # The numbers of continuous ranges are mere fillers in a configuration that probes widths.
    fillers = {parameter.key for parameter in arms.space.parameters if parameter.domain.is_continuous}
    told = {name: chosen for name, chosen in values.items() if name != key and name not in fillers}
    sampled = ", ".join(f"{name} = {value_text(chosen)}" for name, chosen in told.items())
    return spec.source.error(path, f"{message} (in cell {arms.id}{' with ' + sampled if sampled else ''})")
