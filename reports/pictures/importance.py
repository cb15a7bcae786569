"""Which searched hyperparameters mattered: Optuna's importances, from trials rebuilt out of the records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from reports.pictures.material import DrawnCell, DrawnTrial, Material
from reports.pictures.picture import Drawn, in_pictures, left_out
from reports.pictures.style import BILATERAL, legend, panels
from reports.records.search_plan import CHOICE, SearchedRange

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

LEAST_TRIALS = 8
"""Comparable trials below which an importance would be chance."""

MOST_TRIALS = 300
"""Of more, so many count, evenly from the order of the search: the time grows faster than their number."""

SEED = 0
KIND = "importance"
_BAR = 0.13
"""Height of a bar with the gap above it, in inches."""

CAPTION = (
    "Share of the variance of the last validation metric that each searched hyperparameter explains, over n search "
    "trials that finished or reached the last rung and in which all of them were sampled (at most "
    f"{MOST_TRIALS}, evenly from the search), without those that are the same in all of these: fANOVA (bars) and mean "
    f"decrease of impurity (marks), both as in Optuna with seed {SEED}. Where the two differ much, n is too small to "
    "rank."
)


@dataclass(frozen=True, kw_only=True)
class Importance:
    """Shares by hyperparameter, of fANOVA and of the mean decrease of impurity, over so many ``trials``."""

    trials: int
    fanova: Mapping[str, float]
    impurity: Mapping[str, float]


def importances(material: Material) -> Drawn:
    """A panel for each cell with enough comparable trials and two or more searched hyperparameters."""
    searched = [cell for cell in material.cells if len(_ranges(cell)) > 1]
    found = [(cell, comparable(cell)) for cell in searched]
    few = [cell.name for cell, trials in found if len(trials) < LEAST_TRIALS]
    many = [(cell, trials, _importance(cell, trials)) for cell, trials in found if len(trials) >= LEAST_TRIALS]
    drawn = [(cell, shares) for cell, _, shares in many if shares is not None]
    unknown = [(cell.name, _ended_alike(trials)) for cell, trials, shares in many if shares is None]
    too_few = f"fewer than {LEAST_TRIALS} search trials in which all was sampled finished or reached the last rung"
    too_alike = "of what it searched fewer than two differ among the trials in which all were sampled"
    nothing = () if searched else (f"{KIND}: no cell searched two hyperparameters",)
    return Drawn(
        pictures=in_pictures("importance", "Importance of the hyperparameters", CAPTION, drawn, _draw),
        skipped=(
            *nothing,
            *left_out(KIND, few, too_few),
            *left_out(KIND, [name for name, alike in unknown if alike], "all its trials ended alike"),
            *left_out(KIND, [name for name, alike in unknown if not alike], too_alike),
        ),
    )


def _draw(part: Sequence[tuple[DrawnCell, Importance]]) -> Figure:
    titles = [f"{cell.name} (n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{shares.trials})" for cell, shares in part]
    most = max(len(shares.fanova) for _, shares in part)
    # To the right: over the names of hyperparameters there is room for a title, beyond the axes there is none.
    figure, axes = panels(titles, columns=2, height=0.75 + _BAR * most, align="right")
    for panel, (_, shares) in zip(axes, part, strict=True):
        names = sorted(shares.fanova, key=lambda name: (shares.fanova[name], name))
        places = range(len(names))
        values = [shares.fanova[name] for name in names]
        panel.barh(places, values, tick_label=names, color=BILATERAL[0], height=0.6, label="fANOVA")
        panel.plot(
            [shares.impurity[name] for name in names],
            places,
            color="black",
            marker="D",
            linestyle="none",
            label="mean decrease of impurity",
            clip_on=False,
        )
        panel.set_xlim(0, 1)
        panel.set_xlabel("Share of the variance")
    legend(figure, axes)
    return figure


def importance(cell: DrawnCell) -> Importance | None:
    """The importances of a cell; None with fewer than :data:`LEAST_TRIALS`, one hyperparameter, or equal values."""
    return _importance(cell, comparable(cell))


def _importance(cell: DrawnCell, trials: Sequence[DrawnTrial]) -> Importance | None:
    # What is the same in all trials explains nothing here, whatever it does: 0 would say that it does not matter.
    ranges = [searched for searched in _ranges(cell) if len({trial.settings[searched.name] for trial in trials}) > 1]
    if len(ranges) < 2 or len(trials) < LEAST_TRIALS or _ended_alike(trials):
        return None
    import optuna

    domains = {searched.name: _distribution(searched, trials) for searched in ranges}
    with _quiet():
        study = optuna.create_study(direction="minimize" if cell.cell.direction == "min" else "maximize")
        for trial in trials:
            params = {searched.name: _external(searched, trial.settings[searched.name]) for searched in ranges}
            study.add_trial(optuna.trial.create_trial(params=params, distributions=domains, value=trial.val_metric))
        fanova, impurity = (
            optuna.importance.get_param_importances(study, evaluator=evaluator(seed=SEED))
            for evaluator in (
                optuna.importance.FanovaImportanceEvaluator,
                optuna.importance.MeanDecreaseImpurityImportanceEvaluator,
            )
        )
    return Importance(trials=len(trials), fanova=fanova, impurity=impurity)


def _ended_alike(trials: Sequence[DrawnTrial]) -> bool:
    return len({trial.val_metric for trial in trials}) < 2


def _ranges(cell: DrawnCell) -> list[SearchedRange]:
    """What was searched in the cell, and sampled in some trial."""
    sampled = {searched.name for trial in cell.search for searched in cell.search_plan.sampled(trial.settings)}
    return [searched for searched in cell.search_plan.ranges or () if searched.name in sampled]


def comparable(cell: DrawnCell) -> list[DrawnTrial]:
    """The search trials of the cell that its importances are of, in the order of the search."""
    number = len(_ranges(cell))
    found = [trial for trial in cell.complete_search if len(cell.search_plan.sampled(trial.settings)) == number]
    if len(found) <= MOST_TRIALS:
        return found
    return [found[place * len(found) // MOST_TRIALS] for place in range(MOST_TRIALS)]


def _distribution(searched: SearchedRange, trials: Sequence[DrawnTrial]) -> BaseDistribution:
    """As the plan says, widened to what is on record: a search may have been extended with other ranges."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    values = [trial.settings[searched.name] for trial in trials]
    if searched.kind == CHOICE:
        return CategoricalDistribution(sorted({str(value) for value in values}))
    low, high = min(searched.values[0], *values), max(searched.values[1], *values)
    is_log = searched.kind.startswith("log") and low > 0
    return (IntDistribution if "int" in searched.kind else FloatDistribution)(low, high, log=is_log)


def _external(searched: SearchedRange, value: object) -> object:
    return str(value) if searched.kind == CHOICE else value


@contextmanager
def _quiet() -> Iterator[None]:
    """Optuna tells of every study, by a random name: nothing that a reader needs."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
