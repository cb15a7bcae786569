"""Whether arms that face each other had the same means: parameters, configurations tried, epochs trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reports.check.finding import Finding, Kind, Severity
from reports.evidence.study_facts import CellFacts, StudyFacts
from study.counted import counted

FEWEST_OF_MOST = 0.5
"""An arm that tried fewer configurations than this part of the other's was not searched as that one was."""
PARAMS_RATIO = 1.05
"""Without a budget, arms of one width are not of one size; more apart than this, size may explain a difference."""
EPOCHS_RATIO = 1.5
"""Pruning alone makes the epochs of two searches differ; by more than this, one arm was trained more."""
_SEARCHED = "a searched one"
"""What stands in the place of a setting's value where an arm searched it."""

OVER_BUDGET = Kind(
    name="over-budget",
    severity="forbids",
    effect="the model is larger than its row says, and a better number may come from its size",
    mend="run it within the budget, or give its hidden_dim in place of a budget and print its parameters",
)
UNEQUAL_SIZE = Kind(
    name="unequal-size",
    severity="warns",
    effect="a better number of the larger model may come from its size, not from the gate",
    mend="give both arms one budget in place of a width, or print the parameters and say so",
)
UNEQUAL_SEARCH = Kind(
    name="unequal-search",
    severity="warns",
    effect="the arm that tried more configurations had more chances to look good",
    mend="give both arms the same number of trials over ranges of the same width, or say how many each had",
)
UNEQUAL_EPOCHS = Kind(
    name="unequal-epochs",
    severity="warns",
    effect="the arm that was trained for longer had the advantage",
    mend="give both arms the same max_epochs and pruning, or say what each had",
)
UNEQUAL_SETTINGS = Kind(
    name="unequal-settings",
    severity="warns",
    effect="the gate is not all in which the arms differ, so a difference in their numbers may not be the gate's",
    mend="give both arms the same values, or add the vanilla arm that has those of the gated one",
)


def budgets(facts: StudyFacts) -> Iterator[Finding]:
    """Runs whose model has more parameters than its budget."""
    for cell in facts.cells:
        over = [trial for trial in cell.counted if trial.budget is not None and trial.params > trial.budget]
        if over:
            worst = max(over, key=lambda trial: trial.params)
            found = f"{worst.params} parameters for a budget of {worst.budget}"
            yield OVER_BUDGET.in_cell(facts, cell, found, over)


def parameters(facts: StudyFacts) -> Iterator[Finding]:
    """Facing arms of different size, neither of which has a budget that would hold them alike."""
    for gated, vanilla in facts.facing():
        ours, theirs = ([trial for trial in cell.counted if trial.budget is None] for cell in (gated, vanilla))
        if ours and theirs:
            counts = max(trial.params for trial in ours), max(trial.params for trial in theirs)
            if max(counts) > PARAMS_RATIO * min(counts):
                found = (
                    f"{counts[0]} parameters, against {counts[1]} of {vanilla.name}, which it faces, without a budget"
                )
                yield UNEQUAL_SIZE.in_cell(facts, gated, found, (*ours, *theirs))


def tuning_efforts(facts: StudyFacts) -> Iterator[Finding]:
    """Facing arms that tried different numbers of configurations."""
    for gated, vanilla in facts.facing():
        counts = len(gated.search), len(vanilla.search)
        if counts[0] != counts[1]:
            found = f"{counted(counts[0], 'search trial')}, against {counts[1]} of {vanilla.name}, which it faces"
            yield UNEQUAL_SEARCH.in_cell(facts, gated, found, (), _severity(gated, vanilla))


def trained_epochs(facts: StudyFacts) -> Iterator[Finding]:
    """Facing arms whose searches trained for different times, or whose runs may train for different times."""
    for gated, vanilla in facts.facing():
        searched = [sum(trial.num_epochs for trial in cell.search) for cell in (gated, vanilla)]
        if min(searched) > 0 and max(searched) > EPOCHS_RATIO * min(searched):
            found = f"its search trained for {searched[0]} epochs, against {searched[1]} of {vanilla.name}"
            yield UNEQUAL_EPOCHS.in_cell(facts, gated, found, ())
        limits = [sorted({trial.max_epochs for trial in cell.counted}) for cell in (gated, vanilla)]
        if all(limits) and limits[0] != limits[1]:
            told = [" and ".join(map(str, found)) for found in limits]
            found = f"its runs may train for {told[0]} epochs, against {told[1]} of {vanilla.name}"
            yield UNEQUAL_EPOCHS.in_cell(facts, gated, found, (*gated.counted, *vanilla.counted))


def other_settings(facts: StudyFacts) -> Iterator[Finding]:
    """Facing arms that are to differ in their gate and have other settings of model or training, given or searched."""
    for gated, vanilla in facts.facing():
        ours, theirs = (_given_and_searched(cell) for cell in (gated, vanilla))
        differing = [f"{name} {ours[name]}, against {theirs[name]}" for name in ours if _differ(name, ours, theirs)]
        if differing:
            found = f"{'; '.join(differing)} of {vanilla.name}, which it faces"
            yield UNEQUAL_SETTINGS.in_cell(facts, gated, found, ())


def _given_and_searched(cell: CellFacts) -> dict[str, str]:
    """The settings of model and training that the plan has of a cell: the value, or that it was searched."""
    searched = dict.fromkeys((entry.name for entry in cell.search_plan.ranges or ()), _SEARCHED)
    return {**searched, **dict(cell.cell.other_settings or ())}


def _differ(name: str, ours: Mapping[str, str], theirs: Mapping[str, str]) -> bool:
    # What one arm alone has is its gate's; of epochs trained_epochs tells.
    return name in theirs and name != "max_epochs" and ours[name] != theirs[name]


def _severity(gated: CellFacts, vanilla: CellFacts) -> Severity:
    """Grave where both were to be searched and one got less than half of the other's trials."""
    counts = sorted((len(gated.search), len(vanilla.search)))
    # A baseline with nothing to search (the space holds keys of the gate alone) is usual; readers must know.
    had_a_search = all(cell.search or cell.search_plan.trials for cell in (gated, vanilla))
    return "forbids" if had_a_search and counts[0] < FEWEST_OF_MOST * counts[1] else "warns"
