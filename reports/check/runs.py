"""The runs behind a number: whether they are those that the study asks for, each once, and how they ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from reports.check.finding import Finding, Kind
from reports.evidence.study_facts import StudyFacts, run_text
from reports.records.details import TrialDetails
from reports.summary.summarise import Gap
from study.counted import counted

MISSING_RUN = Kind(
    name="missing-run",
    severity="forbids",
    effect="mean and spread are of fewer runs than the caption says, and a cell that lost its worst runs looks better",
    mend="start the study again: it runs what is missing; say in the text what cannot be run",
)
NO_NUMBER = Kind(
    name="run-without-number",
    severity="forbids",
    effect="the run ended and its test metric is no number, so mean and spread are of the others alone",
    mend="move its record out of records/ and start the study again, which runs it anew; if it ends so again, say so",
)
UNFINISHED_RUN = Kind(
    name="unfinished-run",
    severity="forbids",
    effect="the run gives no number, so mean and spread are of the others alone, which may be the easier ones",
    mend="start the study again (failed and interrupted trials go on); a run that diverged is a result to report",
)
DOUBLED_RUN = Kind(
    name="doubled-run",
    severity="forbids",
    effect="one of the two enters the number and nothing says which was meant",
    mend="move the records that do not belong to this study out of the folder",
)
UNASKED_RUN = Kind(
    name="unasked-run",
    severity="warns",
    effect="the run is on record but left out of the number; adding or dropping seeds after a look is a choice by test",
    mend="name its seed and fold in the study file, or say that it was left out",
)
ONE_RUN = Kind(
    name="one-run",
    severity="warns",
    effect="one run has no spread; no difference to another cell can be judged",
    mend="add seeds or folds to confirm",
)
ZERO_SPREAD = Kind(
    name="zero-spread",
    severity="warns",
    effect="a spread of 0 is no measure of noise, and tests on it mislead; the seed may not reach the training",
    mend="look at the learning curves of the seeds; a network that always answers the same class does this too",
)
CUT_SHORT = Kind(
    name="cut-short",
    severity="warns",
    effect="training ended before its schedule did, so the cell may stand below what it can reach",
    mend="raise max_epochs or time_limit_s, or say in the caption where training was cut",
)
SEARCH_UNFINISHED = Kind(
    name="search-unfinished",
    severity="warns",
    effect="these configurations never competed, so another one might have been chosen",
    mend="start the study again for those that failed or still run; look at what they have in common",
)


def missing_runs(facts: StudyFacts) -> Iterator[Finding]:
    """Runs asked for that gave no number: not on record or without a metric, or not at their end."""
    for cell in facts.cells:
        runs = {(trial.seed, trial.fold): trial for trial in cell.current}
        began = [gap for gap in cell.summary.gaps if _unfinished(runs.get((gap.seed, gap.fold)))]
        ended = [
            gap
            for gap in cell.summary.gaps
            if (gap.seed, gap.fold) in runs and not _unfinished(runs[gap.seed, gap.fold])
        ]
        never = [gap for gap in cell.summary.gaps if (gap.seed, gap.fold) not in runs]
        for kind, gaps in ((MISSING_RUN, never), (UNFINISHED_RUN, began), (NO_NUMBER, ended)):
            if gaps:
                told = _by_reason(gaps)
                trials = [runs[gap.seed, gap.fold] for gap in gaps if (gap.seed, gap.fold) in runs]
                yield kind.in_cell(
                    facts, cell, f"{cell.summary.finished} of {cell.summary.asked} runs gave a number; {told}", trials
                )


def doubled_and_unasked_runs(facts: StudyFacts) -> Iterator[Finding]:
    """Seeds and folds with more than one confirm trial, and such that the plan does not name."""
    for cell in facts.cells:
        runs: defaultdict[tuple[int, int | None], list[TrialDetails]] = defaultdict(list)
        for trial in cell.confirm:
            if trial.status != "superseded":
                runs[trial.seed, trial.fold].append(trial)
        doubled = {run: trials for run, trials in runs.items() if len(trials) > 1}
        if doubled:
            told = ", ".join(f"{run_text(*run)} has {len(doubled[run])}" for run in sorted(doubled, key=_order))
            yield DOUBLED_RUN.in_cell(
                facts, cell, f"more than one confirm trial of a run: {told}", _all(doubled.values())
            )
        asked = set(cell.cell.asked)
        unasked = {run: trials for run, trials in runs.items() if run not in asked}
        if unasked:
            told = ", ".join(run_text(*run) for run in sorted(unasked, key=_order))
            yield UNASKED_RUN.in_cell(
                facts, cell, f"confirm trials that the plan does not ask for: {told}", _all(unasked.values())
            )


def spreads(facts: StudyFacts) -> Iterator[Finding]:
    """Cells of a single run, and such whose runs all gave the same value."""
    for cell in facts.cells:
        if cell.summary.asked == 1:
            yield ONE_RUN.in_cell(facts, cell, "the study asks for a single run", cell.counted)
        elif len(cell.counted) > 1 and len({trial.test_metric for trial in cell.counted}) == 1:
            found = f"all {len(cell.counted)} runs have the test metric {cell.counted[0].test_metric!r}"
            yield ZERO_SPREAD.in_cell(facts, cell, found, cell.counted)


def cut_short(facts: StudyFacts) -> Iterator[Finding]:
    """Runs behind a number that a limit ended."""
    for cell in facts.cells:
        for limit in ("max_epochs", "time_limit"):
            trials = [trial for trial in cell.counted if trial.reason == limit]
            if trials:
                epochs = sorted({trial.num_epochs for trial in trials})
                span = counted(epochs[0], "epoch") if len(epochs) == 1 else f"{epochs[0]} to {epochs[-1]} epochs"
                found = f"{len(trials)} of {counted(len(cell.counted), 'run')} ended by {limit}, after {span}"
                yield CUT_SHORT.in_cell(facts, cell, found, trials)


def search_ends(facts: StudyFacts) -> Iterator[Finding]:
    """Search trials that could not compete."""
    for cell in facts.cells:
        for status in ("diverged", "failed", "running"):
            trials = [trial for trial in cell.search if trial.status == status]
            if trials:
                found = f"{len(trials)} of {counted(len(cell.search), 'search trial')} {status}"
                yield SEARCH_UNFINISHED.in_cell(facts, cell, found, trials)


def _by_reason(gaps: Iterable[Gap]) -> str:
    reasons: dict[str, list[str]] = {}
    for gap in gaps:
        reasons.setdefault(gap.reason, []).append(run_text(gap.seed, gap.fold))
    return "; ".join(f"{', '.join(runs)}: {reason}" for reason, runs in reasons.items())


def _unfinished(trial: TrialDetails | None) -> bool:
    return trial is not None and trial.status != "finished"


def _order(run: tuple[int, int | None]) -> tuple[int, int]:
    return run[0], -1 if run[1] is None else run[1]


def _all(groups: Iterable[list[TrialDetails]]) -> list[TrialDetails]:
    return [trial for group in groups for trial in group]
