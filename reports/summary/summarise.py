"""From the confirm trials of a cell to its mean and spread, and to what is missing from them."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TypeGuard

from reports.records.load import StudyResults, Trial
from reports.records.plan import PlanCell, setting_text

SEARCHABLE = ("placement", "gate", "layers", "budget", "num_clusters", "sigma_m", "unsupervised_weight")
"""What a study may search within a cell, so that the cell is labelled by the value chosen."""

MAX_REASON = 160
"""Characters of a reason shown below a table; the record holds the whole."""

ROUNDING = 1e-12
"""Difference, as a share of the values, up to which they count as equal: above what arithmetic itself leaves."""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Mean and population standard deviation (ddof 0, as the paper) of a metric, as a fraction, unrounded.

    A single value has no spread: its ``std`` is None.
    """

    mean: float
    std: float | None


@dataclass(frozen=True, kw_only=True)
class Run:
    """A finished confirm run behind a cell's numbers; metrics as fractions, ``train`` None where not measured."""

    key: str
    seed: int
    fold: int | None
    test: float
    train: float | None


@dataclass(frozen=True, kw_only=True)
class Gap:
    """A run that the study asks for and that gives no number, and why."""

    seed: int
    fold: int | None
    reason: str


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The configuration behind a cell: of its confirm trials, or, before there are any, what the plan fixes.

    None is not known yet, or does not exist for the cell. ``departures`` are those of the plan, and beside them what
    the chosen configuration departs in. ``other_settings`` are those of the plan, and beside them what its search chose
    that has no field here.
    """

    layers: int | None
    budget: int | None
    hidden_dim: int | None
    params: int | None
    placement: str | None
    gate: str | None
    num_clusters: int | None
    sigma_m: float | None
    unsupervised_weight: float | None
    semantics: str | None
    departures: tuple[tuple[str, str], ...]
    other_settings: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class CellSummary:
    """One cell of a table.

    Attributes:
        cell: what was planned.
        chosen: what was run.
        finished: number of finished confirm runs that the plan asks for; ``test`` is None where it is 0.
        test, train: spread over those runs; ``train`` is None where a run has no train metric.
        last_epoch: mean 0-based index of the last epoch: completed epochs - 1.
        runs: those runs, in the plan's order of seeds and folds.
        data: fingerprint of the data that they ran on; None without a run.
        gaps: the runs asked for that gave no number; they enter no mean.
        set_aside: confirm trials on record that do not count: of other configurations, data, seeds or folds.
    """

    cell: PlanCell
    chosen: Chosen
    finished: int
    test: Spread | None
    train: Spread | None
    last_epoch: float | None
    runs: tuple[Run, ...]
    data: str | None
    gaps: tuple[Gap, ...]
    set_aside: int

    @property
    def asked(self) -> int:
        """Number of runs that the study asks for."""
        return len(self.cell.asked)

    @property
    def complete(self) -> bool:
        """Whether every run asked for gave its number."""
        return self.finished == self.asked

    @property
    def ground(self) -> tuple[str | None, tuple[int, ...]]:
        """Data and folds that it is measured on: means over others are no measure of the models."""
        return self.data, tuple(sorted(self.cell.folds or ()))

    @property
    def searched(self) -> tuple[str, ...]:
        """What was searched within the cell: left open by the plan, settled by the records."""
        return tuple(
            key for key in SEARCHABLE if getattr(self.cell, key) is None and getattr(self.chosen, key) is not None
        )


def spread(values: Sequence[float]) -> Spread:
    """Mean and population standard deviation of one or more values, the same in whatever order they come."""
    # mean, unlike fmean, is exact before its one rounding: three times 0.1 is 0.1, so equal cells stay equal.
    return Spread(mean=statistics.mean(values), std=statistics.pstdev(values) if len(values) > 1 else None)


def difference_of_means(left: Spread, right: Spread) -> float:
    """``left`` - ``right``; 0 where only rounding parts them.

    As many graphs may be right in all, spread over the folds otherwise: the share of each fold was rounded by itself.
    """
    return 0.0 if math.isclose(left.mean, right.mean, rel_tol=ROUNDING) else left.mean - right.mean


def summarise(results: StudyResults) -> tuple[CellSummary, ...]:
    """A summary of every cell of the plan, in the plan's order."""
    trials: defaultdict[str, list[Trial]] = defaultdict(list)
    for trial in results.trials:
        trials[trial.cell].append(trial)
    return tuple(_summarise_cell(cell, trials[cell.id]) for cell in results.plan.cells)


def trials_outside_plan(results: StudyResults) -> int:
    """Number of confirm trials of cells that the plan does not name."""
    cells = {cell.id for cell in results.plan.cells}
    return sum(trial.phase == "confirm" and trial.cell not in cells for trial in results.trials)


def _summarise_cell(cell: PlanCell, trials: Sequence[Trial]) -> CellSummary:
    confirm = [trial for trial in trials if trial.phase == "confirm"]
    current = current_configuration(confirm)
    runs = {(trial.seed, trial.fold): trial for trial in current}
    latest = {(trial.seed, trial.fold): trial for trial in sorted(confirm, key=lambda one: (one.started_at, one.key))}
    never = _never_started(trials)
    reasons = {run: _reason_of_gap(runs.get(run), latest.get(run), never) for run in cell.asked}
    usable = [runs[run] for run in cell.asked if reasons[run] is None]
    finished = tuple(_run(trial) for trial in usable)
    train = [run.train for run in finished if run.train is not None]
    return CellSummary(
        cell=cell,
        chosen=_chosen(cell, current),
        finished=len(usable),
        test=_spread_or_none([run.test for run in finished]),
        train=_spread_or_none(train) if len(train) == len(usable) else None,
        last_epoch=statistics.fmean(trial.num_epochs - 1 for trial in usable) if usable else None,
        runs=finished,
        data=usable[0].data_fingerprint if usable else None,
        gaps=tuple(Gap(seed=run[0], fold=run[1], reason=reason) for run, reason in reasons.items() if reason),
        set_aside=len(confirm) - sum(run in runs for run in cell.asked),
    )


def _run(trial: Trial) -> Run:
    assert trial.test_metric is not None  # else it is a gap
    train = trial.train_metric if _is_number(trial.train_metric) else None
    return Run(key=trial.key, seed=trial.seed, fold=trial.fold, test=trial.test_metric, train=train)


def _spread_or_none(values: Sequence[float]) -> Spread | None:
    return spread(values) if values else None


def current_configuration(confirm: Iterable[Trial]) -> list[Trial]:
    """The confirm trials of the configuration that was begun last.

    A search that is extended may choose anew; a mean over two configurations would be of neither.
    """
    groups: defaultdict[str, list[Trial]] = defaultdict(list)
    for trial in confirm:
        groups[_configuration(trial)].append(trial)
    return max(groups.values(), key=lambda group: max((trial.started_at, trial.key) for trial in group), default=[])


def _configuration(trial: Trial) -> str:
    """What all confirm trials of one choice share: the data, and everything of the configuration but seed and fold."""
    config = json.loads(trial.config_json)
    return json.dumps([trial.data_fingerprint, {**config, "seed": None, "fold": None}], sort_keys=True)


def _chosen(cell: PlanCell, current: Sequence[Trial]) -> Chosen:
    source: PlanCell | Trial = current[0] if current else cell
    departures = _departures(cell, current[0].departures if current else None)
    return Chosen(
        layers=source.layers,
        budget=source.budget,
        hidden_dim=source.hidden_dim,
        params=current[0].params if current else None,
        placement=source.placement,
        gate=source.gate,
        num_clusters=source.num_clusters,
        sigma_m=source.sigma_m,
        unsupervised_weight=source.unsupervised_weight,
        semantics=cell.semantics or source.semantics,
        departures=departures,
        other_settings=_other_settings(cell, current[0].config_json if current else None, but=dict(departures)),
    )


def _departures(cell: PlanCell, recorded: str | None) -> tuple[tuple[str, str], ...]:
    """The plan names what all trials of the cell depart in; a setting may be searched, or exist in some of them."""
    run = {} if recorded is None else json.loads(recorded)
    chosen = {name: setting_text(value) for name, value in run.items()}
    return tuple(sorted({**chosen, **dict(cell.departures)}.items()))


def _other_settings(cell: PlanCell, recorded: str | None, but: Collection[str]) -> tuple[tuple[str, str], ...]:
    """The plan's, and what its search chose, ``but`` those that are told already."""
    config = {} if recorded is None else json.loads(recorded)
    run = {**config.get("model", {}), **config.get("train", {})}
    told = {*but, *(field.name for field in fields(Chosen))}
    chosen = {name: setting_text(run[name]) for name in cell.searched if name in run and name not in told}
    return tuple(sorted({**chosen, **dict(cell.other_settings or ())}.items()))


def _never_started(trials: Iterable[Trial]) -> str:
    """Why a run of a cell with these trials has no record."""
    search = Counter(trial.status for trial in trials if trial.phase == "search")
    counts = ", ".join(f"{count} {status}" for status, count in sorted(search.items()))
    return f"never started (search: {counts})" if counts else "never started"


def _reason_of_gap(run: Trial | None, latest: Trial | None, never: str) -> str | None:
    """Why a seed and fold give no number, or None where they do.

    ``run`` is their trial of the current configuration, ``latest`` that of any which was begun last; ``never`` says why
    there is neither.
    """
    if run is None and latest is not None:
        return (
            f"its record {latest.key} is of another configuration or of other data (fingerprint "
            f"{latest.data_fingerprint}) than that which was begun last"
        )
    if run is None:
        return never
    if run.status != "finished":
        return f"{run.status}: {_one_line(run.reason)}" if run.reason else run.status
    if not _is_number(run.test_metric) or run.num_epochs == 0:
        return f"finished without a number: test metric {run.test_metric} after {run.num_epochs} epochs"
    return None


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_REASON else f"{line[: MAX_REASON - 3]}..."


def _is_number(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)
