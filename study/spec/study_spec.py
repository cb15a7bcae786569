"""A study as its file describes it: typed and frozen, each key by itself as it may be."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    PrivateAttr,
    StrictBool,
    StrictStr,
    TypeAdapter,
    ValidationInfo,
    field_validator,
)

from study.spec.domains import Domain, different
from study.spec.hyperparameters import Value, Whole, WholeOrZero
from study.spec.sections import arms_of, fixed_of, row_of, space_of
from study.spec.source import Source
from study.spec.strict import Strict, refused

PAPER_SEEDS = (41, 95, 12, 35)
"""Seeds of every row of the paper's tables on datasets with one split."""

_NAME_CHARACTERS = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_NAME_EXPECTED = "letters, digits, - and _, at most 100, the first no -"


def study_name(value: str) -> str:
    """``value``, where it can be a study's name; else a ``PydanticCustomError``."""
    if not value or len(value) > 100 or value.startswith("-") or not set(value) <= _NAME_CHARACTERS:
        raise refused(value, _NAME_EXPECTED)
    return value


def _filled_list(value: Any) -> Any:
    if not isinstance(value, list | tuple) or not value:
        raise refused(value, "a list of at least one whole number")
    return value


def _none_as_null(value: Any) -> Any:
    return None if value == "none" else value


def _filled_rows(value: Any) -> Any:
    if not isinstance(value, list | tuple) or not value:
        raise refused(value, "a list of at least one mapping with keys such as backbone")
    return value


Row = Annotated[dict[str, tuple[Value, ...]], PlainValidator(row_of)]
Rows = Annotated[tuple[Row, ...], BeforeValidator(_filled_rows), AfterValidator(different)]
Seed = Annotated[int, Field(strict=True, ge=0, le=2**32 - 1)]
Seeds = Annotated[tuple[Seed, ...], BeforeValidator(_filled_list), AfterValidator(different)]
Folds = tuple[int, ...] | Literal["all"]
_FOLD_LIST = TypeAdapter(Annotated[tuple[WholeOrZero, ...], AfterValidator(different)])


def _folds(value: Any) -> Folds:
    if value == "all":
        return "all"
    if not isinstance(value, list | tuple) or not value:
        raise refused(value, "all or a list of folds such as [0, 1]")
    return _FOLD_LIST.validate_python(value)


class AshaSpec(Strict):
    """Asynchronous successive halving: of the trials that reach a rung the best ``1 / reduction_factor`` go on.

    Attributes:
        grace_epochs: the first rung; no trial is pruned before.
        reduction_factor: each rung is so many times the one before.
    """

    grace_epochs: Whole = Field(description="the epochs before the first rung")
    reduction_factor: Annotated[int, Field(strict=True, ge=2)] = 3


class SearchSpec(Strict):
    """How each cell is searched.

    Attributes:
        sampler: Optuna's ``tpe`` or ``random``, or every combination (``grid``).
        trials: of each cell that has something to search; None for a grid, which has as many as combinations.
        seed: every search trial trains from it; in a study the first confirm seed where it is not given.
        fold: every search trial trains on it, on datasets with folds.
        asha: None: no trial is pruned.
    """

    sampler: Literal["tpe", "random", "grid"] = "tpe"
    trials: Whole | None = None
    seed: Seed = PAPER_SEEDS[0]
    fold: WholeOrZero = 0
    asha: Annotated[AshaSpec | None, BeforeValidator(_none_as_null)] = None


class ConfirmSpec(Strict):
    """How the best configuration of each cell is measured: once for each seed and each fold."""

    seeds: Seeds = PAPER_SEEDS
    folds: Annotated[Folds, PlainValidator(_folds)] = "all"


Gpus = float | Literal["auto"]


def _gpus(value: Any) -> Gpus:
    if value == "auto":
        return "auto"
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise refused(value, "a number, 0 or more, or auto")
    if value > 1 and not float(value).is_integer():
        raise refused(value, "a part of one GPU, or whole ones")  # Ray has no others
    return float(value)


class ResourcesSpec(Strict):
    """What a trial gets, and how many run side by side.

    Attributes:
        cpus_per_trial: cores, and threads.
        gpus_per_trial: whole ones or a part of one; ``auto``: what a probe on the cluster finds to be enough.
        max_trials_per_gpu: that ``auto`` packs on one.
        max_concurrent: None: as many as fit.
        seeds_together: whether the confirm trials of a cell are trained as one, in one slot.
    """

    cpus_per_trial: Whole = 1
    gpus_per_trial: Annotated[Gpus, PlainValidator(_gpus)] = 0.0
    max_trials_per_gpu: Whole = 8
    max_concurrent: Whole | None = None
    seeds_together: StrictBool = False

    @property
    def gpus(self) -> float:
        """GPUs of a trial as a number; none as long as ``auto`` has not been decided."""
        return 0.0 if self.gpus_per_trial == "auto" else self.gpus_per_trial

    def with_gpus(self, gpus_per_trial: float) -> ResourcesSpec:
        """The same with so many for a trial."""
        return self.model_copy(update={"gpus_per_trial": gpus_per_trial})


class StudySpec(Strict):
    """A whole study; :func:`study.spec.read_study` checks what must hold between its keys.

    Attributes:
        name: of the study, its results folder and its MLflow experiment.
        caption: text for the table.
        seed: every sampler's seed comes from it.
        arms: values of each key, crossed into cells.
        rows: the arms are crossed once for each, with its values in the place of what the other sections say.
        space: what each key is sampled from within a cell.
        fixed: one value for all trials.
    """

    name: Annotated[StrictStr, AfterValidator(study_name)] = Field(description=_NAME_EXPECTED)
    caption: StrictStr | None = None
    seed: Seed = 0
    arms: Annotated[dict[str, tuple[Value, ...]], PlainValidator(arms_of)] = Field(
        description="a mapping with at least dataset and backbone"
    )
    rows: Rows = ()
    space: Annotated[dict[str, Domain], PlainValidator(space_of)] = Field(default={})
    fixed: Annotated[dict[str, Value], PlainValidator(fixed_of)] = Field(default={})
    confirm: ConfirmSpec = ConfirmSpec()
    search: SearchSpec | None = None
    resources: ResourcesSpec = ResourcesSpec()
    _source: Source = PrivateAttr(default=Source())

    @field_validator("search", mode="before")
    @classmethod
    def _search_with_seed(cls, given: Any, info: ValidationInfo) -> Any:
        confirm = info.data.get("confirm")
        if isinstance(given, dict) and "seed" not in given and confirm is not None:
            return {**given, "seed": confirm.seeds[0]}
        return given

    @property
    def source(self) -> Source:
        """Where it was read from."""
        return self._source
