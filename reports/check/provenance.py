"""Where the numbers come from: one state of the code, one version of the data, one set of libraries, this study."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from reports.check.finding import Finding, Kind
from reports.evidence.study_facts import CellFacts, StudyFacts
from reports.published.data_size import amount_text, has_other_size
from reports.records.details import TrialDetails
from study.counted import counted

Value = TypeVar("Value", bound=Hashable)

MIXED_CODE = Kind(
    name="mixed-code",
    severity="forbids",
    effect="a difference between runs or cells may be one between two states of the code",
    mend="run the trials of one of the commits again in a new results folder, or show that nothing between them counts",
)
DIRTY_CODE = Kind(
    name="changed-code",
    severity="forbids",
    effect="files differed from the commit, so nobody can get back the code that made these numbers",
    mend="commit, and run the study again in a new results folder",
)
UNKNOWN_CODE = Kind(
    name="unknown-code",
    severity="warns",
    effect="the records name no commit, so the code behind these numbers is known by its version at most",
    mend="run from a git checkout",
)
SEARCH_CODE = Kind(
    name="search-of-other-code",
    severity="warns",
    effect="the configuration was chosen by other code than ran it in the end, and may not be the best for that",
    mend="run the study again from one commit, or show that nothing between them counts",
)
MIXED_DATA = Kind(
    name="mixed-data",
    severity="forbids",
    effect="runs or cells were trained or chosen on different data, so their numbers cannot be compared",
    mend="prepare the dataset once and run the study again in a new results folder",
)
OTHER_SIZE = Kind(
    name="other-size",
    severity="warns",
    effect="the table names a dataset of which these numbers are not; of fewer graphs they are worse and vary more",
    mend="prepare the dataset without --size and run the study in a new results folder, or say in the text how many",
)
MIXED_LIBRARIES = Kind(
    name="mixed-libraries",
    severity="warns",
    effect="a difference between runs or cells may be one between two versions of a library",
    mend="run all cells of a table in one environment",
)
OUTSIDE_PLAN = Kind(
    name="outside-plan",
    severity="warns",
    effect="its trials are left out of the table without a trace",
    mend="move the records out of the folder, or name the cell in the study file again",
)
OTHER_STUDY = Kind(
    name="other-study",
    severity="forbids",
    effect="trials of another study, which may have trained otherwise, enter this one's numbers and choices",
    mend="move the records out of the folder",
)


OTHER_NUMBERS = Kind(
    name="other-numbers",
    severity="forbids",
    effect="one trial has two results, so the table depends on which folder is named last",
    mend="keep the folder that ran the trials, and leave the other one out",
)


def code_states(facts: StudyFacts) -> Iterator[Finding]:
    """Different commits within a cell or among cells of a dataset; commits that do not tell the code."""
    for cell in facts.cells:
        commits = _by(cell.counted, _commit)
        if len(commits) > 1:
            yield MIXED_CODE.in_cell(facts, cell, f"runs of {_told(commits)}", cell.counted)
        others = [trial for trial in _compared(cell) if _commit(trial) not in commits]
        if cell.counted and others:
            found = f"{counted(len(others), 'search trial')} of {_told(_by(others, _commit))}"
            yield SEARCH_CODE.in_cell(facts, cell, found, others)
    for title, cells in _datasets(facts):
        if _differ(cells, _commit):
            trials = _counted(cells)
            yield MIXED_CODE.in_study(
                facts,
                title,
                f"cells that are compared are of {_told(_by(trials, _commit))}",
                trials,
            )
    for kind, trials in (
        (DIRTY_CODE, [trial for trial in _counted(facts.cells) if trial.git_dirty]),
        (UNKNOWN_CODE, [trial for trial in _counted(facts.cells) if trial.git_commit is None]),
    ):
        if trials:
            what = "with changed files" if kind is DIRTY_CODE else "of a code state that is not known"
            of = f"of the {counted(len(_counted(facts.cells)), 'run')} behind the table"
            yield kind.in_study(facts, facts.study, f"{len(trials)} {of} {what}", trials)


def data_fingerprints(facts: StudyFacts) -> Iterator[Finding]:
    """Different data within a cell, its search included, or among cells of a dataset."""
    for cell in facts.cells:
        # Runs on other data than those that were begun last do not count; they are here to be found all the same.
        trials = [*(trial for trial in cell.confirm if trial.status == "finished"), *_compared(cell)]
        found = _by(trials, _data)
        if cell.counted and len(found) > 1:
            yield MIXED_DATA.in_cell(facts, cell, f"trials on data {_told(found)}", trials)
    for title, cells in _datasets(facts):
        if _differ(cells, _data):
            trials = _counted(cells)
            found = _by(trials, _data)
            yield MIXED_DATA.in_study(facts, title, f"cells that are compared are of data {_told(found)}", trials)


def data_sizes(facts: StudyFacts) -> Iterator[Finding]:
    """Data with another number of graphs than the paper's dataset of that name."""
    for title, cells in _datasets(facts):
        for fingerprint, trials in _by(_counted(cells), _data).items():
            used = facts.data.get(fingerprint)
            if used is not None and has_other_size(used):
                yield OTHER_SIZE.in_study(facts, title, f"runs on {amount_text(used)}", trials)


def library_versions(facts: StudyFacts) -> Iterator[Finding]:
    """Libraries of which the runs of a dataset used more than one version."""
    for title, cells in _datasets(facts):
        trials = _counted(cells)
        names = sorted({name for trial in trials for name, _ in trial.versions})
        told = []
        for name in names:
            versions = Counter(dict(trial.versions).get(name, "none") for trial in trials)
            if len(versions) > 1:
                shown = ", ".join(f"{version} ({counted(versions[version], 'run')})" for version in sorted(versions))
                told.append(f"{name} {shown}")
        if told:
            yield MIXED_LIBRARIES.in_study(facts, title, f"runs with different libraries: {'; '.join(told)}", trials)


def strangers(facts: StudyFacts) -> Iterator[Finding]:
    """Trials of cells that are not in the plan, and of other studies."""
    for cell, trials in _by(facts.outside, lambda trial: trial.cell).items():
        yield OUTSIDE_PLAN.in_study(
            facts, f"cell {cell}", f"{counted(len(trials), 'trial')} of a cell that the plan does not name", trials
        )
    for own in facts.cells:
        others = [trial for trial in (*own.confirm, *own.search) if trial.study != facts.study]
        if others:
            names = ", ".join(sorted({trial.study for trial in others}))
            yield OTHER_STUDY.in_cell(
                facts, own, f"{counted(len(others), 'trial')} of the study {names}, not {facts.study}", others
            )


def between_studies(studies: Sequence[StudyFacts]) -> Iterator[Finding]:
    """What differs between studies that hold cells of one dataset, and so would stand in one table."""
    titles: defaultdict[str, list[tuple[StudyFacts, list[CellFacts]]]] = defaultdict(list)
    for facts in studies:
        for title, cells in _datasets(facts):
            titles[title].append((facts, cells))
    yield from _other_numbers(studies)
    for title, parts in titles.items():
        trials = [trial for _, cells in parts for trial in _counted(cells)]
        for kind, value in ((MIXED_DATA, _data), (MIXED_CODE, _commit)):
            found = {frozenset(map(value, _counted(cells))) for _, cells in parts if _counted(cells)}
            if len(found) > 1:
                names = ", ".join(facts.study for facts, _ in parts)
                told = f"the studies {names} are of {_told(_by(trials, value))}"
                yield kind.in_study(parts[-1][0], title, told, trials)


def _other_numbers(studies: Sequence[StudyFacts]) -> Iterator[Finding]:
    """Trials that two studies hold under one key, finished in both, with different numbers."""
    seen: dict[str, tuple[StudyFacts, TrialDetails]] = {}
    for facts in studies:
        differing = []
        for cell in facts.cells:
            for trial in (*cell.confirm, *cell.search):
                _, other = seen.setdefault(trial.key, (facts, trial))
                if trial.status == other.status == "finished" and _numbers(trial) != _numbers(other):
                    differing.append(trial)
        if differing:
            first = min(differing, key=lambda trial: trial.key)
            told = f"{counted(len(differing), 'trial')} of {facts.study} with other numbers than in a study before"
            values = " and ".join(map(str, (seen[first.key][1].test_metric, first.test_metric)))
            yield OTHER_NUMBERS.in_study(
                facts, facts.study, f"{told}, the first {first.file}: test metrics {values}", differing
            )


def _numbers(trial: TrialDetails) -> tuple[str, ...]:
    # As text, in which NaN is equal to itself.
    return tuple(map(repr, (trial.train_metric, trial.val_metric, trial.test_metric)))


def _data(trial: TrialDetails) -> str:
    return trial.data_fingerprint


def _commit(trial: TrialDetails) -> str:
    return trial.git_commit or "an unknown commit"


def _datasets(facts: StudyFacts) -> list[tuple[str, list[CellFacts]]]:
    """The cells of each dataset: the table compares them all, to find the best."""
    groups: defaultdict[str, list[CellFacts]] = defaultdict(list)
    for cell in facts.cells:
        groups[cell.cell.dataset].append(cell)
    return [(cells[0].cell.dataset_title, cells) for cells in groups.values()]


def _compared(cell: CellFacts) -> list[TrialDetails]:
    """The search trials among which the configuration was chosen."""
    return [trial for trial in cell.search if trial.status in ("finished", "pruned")]


def _counted(cells: Iterable[CellFacts]) -> list[TrialDetails]:
    return [trial for cell in cells for trial in cell.counted]


def _differ(cells: Iterable[CellFacts], value: Callable[[TrialDetails], Value]) -> bool:
    """Whether two cells differ, each being of one value; what differs within a cell is that cell's finding."""
    found = [{value(trial) for trial in cell.counted} for cell in cells]
    return len({next(iter(values)) for values in found if len(values) == 1}) > 1


def _by(trials: Iterable[TrialDetails], value: Callable[[TrialDetails], Value]) -> dict[Value, list[TrialDetails]]:
    groups: defaultdict[Value, list[TrialDetails]] = defaultdict(list)
    for trial in trials:
        groups[value(trial)].append(trial)
    return dict(groups)


def _told(groups: Mapping[str, list[TrialDetails]]) -> str:
    return " and ".join(f"{name} ({counted(len(groups[name]), 'trial')})" for name in sorted(groups))
