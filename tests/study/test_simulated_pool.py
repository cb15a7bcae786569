"""One pool for many cells: thousands of trials that train nothing, through a run's searcher and scheduler.

Nothing here starts Ray; its own ASHA is the judge.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from ray.tune.experiment import Trial
from ray.tune.schedulers import AsyncHyperBandScheduler, TrialScheduler

from benchmarks.simulated_pool import FakeTraining, Report, SimulatedPool, Timeline, simulated_coordinator
from study.assignment import TrialAssignment
from study.cluster import Slots
from study.dispatch import Dispatch
from study.journal import Journal
from study.plan import Cell, StudyPlan, plan
from study.records import read_records
from study.results import ResultsFolder
from study.spec import read_study
from study.tune_bridge import CoordinatedScheduler

MANY = """
name: many
seed: 3
arms: {dataset: [digits, zinc], backbone: [gcn, gat], placement: [none, boosting, dense], hidden_dim: 8, layers: [2, 4]}
space:
  learning_rate: {choice: [0.01, 0.009, 0.008, 0.007, 0.006, 0.005, 0.004, 0.003, 0.002, 0.001]}
  batch_size: {choice: [32, 64, 128]}
  num_clusters: {int: [2, 12]}
  sigma_m: {log_uniform: [0.1, 10]}
fixed: {max_epochs: 27}
search: {sampler: random, trials: 1, asha: {grace_epochs: 1, reduction_factor: 3}}
confirm: {seeds: [41, 95, 12, 35]}
"""
"""24 cells; the 8 vanilla ones have 30 configurations, so that a long search meets each of them again."""

FEW = """
name: few
arms: {dataset: [digits, enzymes], backbone: gcn, placement: [none, boosting], hidden_dim: 8, layers: 2}
space: {learning_rate: {log_uniform: [1.0e-3, 1.0e-2]}, sigma_m: {log_uniform: [0.1, 10]}, num_clusters: {int: [2, 9]}}
fixed: {max_epochs: 9}
search: {sampler: tpe, trials: 1, asha: {grace_epochs: 2, reduction_factor: 2}}
confirm: {seeds: [41, 95]}
"""
"""4 cells, the confirm trials of enzymes ten times as many as of digits."""

SIZES = {"many": tuple((7 * cell % 24) ** 2 // 4 + 1 for cell in range(24)), "few": (60, 150, 9, 90)}
"""Search trials of each cell: from 1 to 133 among the many, 1,102 in all."""


def unit(*parts: object) -> float:
    """A number from 0 up to 1 that follows from ``parts`` alone."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:6], "big") / 2**48


def seconds(assignment: TrialAssignment) -> float:
    """Of an epoch: cells differ up to twentyfold, trials of a cell up to threefold."""
    return (1 + 19 * unit(assignment.cell, "seconds") ** 3) * (0.5 + unit(assignment.key, "seconds"))


def val_metric(assignment: TrialAssignment, epoch: int) -> float:
    """Curves that cross; of two digits, so that some are equal."""
    level = unit(assignment.key, "level") + 0.3 * unit(assignment.key, epoch)
    return round(level * (1 - math.exp(-epoch / 3)), 2)


def last_epoch(assignment: TrialAssignment) -> int:
    """Three in four train to the end, the others stop earlier, at a rung or between two."""
    longest = assignment.config.train.max_epochs
    stops = unit(assignment.key, "stops")
    return longest if stops > 0.25 else 1 + int(4 * stops * longest)


@dataclass(frozen=True)
class Simulated:
    plan: StudyPlan
    sizes: dict[str, int]
    folder: ResultsFolder
    line: Timeline


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(("many", 16), id="many on 16", marks=pytest.mark.slow),
        pytest.param(("few", 5), id="few on 5"),
    ],
)
def simulated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    name, slots = request.param
    spec = read_study({"many": MANY, "few": FEW}[name])
    planned = plan(spec)
    folder = ResultsFolder(tmp_path_factory.mktemp(name))
    coordinator = simulated_coordinator(spec, planned, folder, SIZES[name])
    training = FakeTraining(seconds=seconds, val_metric=val_metric, last_epoch=last_epoch)
    line = SimulatedPool(coordinator, folder, slots, training).run()
    assert coordinator.done
    return Simulated(planned, dict(zip([cell.id for cell in planned.cells], SIZES[name], strict=True)), folder, line)


def test_every_cell_ends_with_the_trials_it_was_to_have(simulated: Simulated) -> None:
    journal = Counter(entry.cell for entry in Journal(simulated.folder.journal).entries())
    assert journal == simulated.sizes
    assert max(Counter(stay.key for stay in simulated.line.stays).values()) == 1
    assert {record.key for record in read_records(simulated.folder.records)} == {
        stay.key for stay in simulated.line.stays
    }
    assert list(simulated.folder.live.iterdir()) == []
    folds = {"digits": 1, "zinc": 1, "enzymes": 10}
    for cell in simulated.plan.cells:
        assert len(simulated.line.of(cell.id, "confirm")) == len(cell.seeds) * folds[cell.dataset]


def test_never_more_trials_than_slots(simulated: Simulated) -> None:
    changes = [(stay.began, 1) for stay in simulated.line.stays] + [(stay.ended, -1) for stay in simulated.line.stays]
    level, highest = 0, 0
    for _, change in sorted(changes):
        level += change
        highest = max(highest, level)
    assert highest == simulated.line.slots


def lone_asha(cell: Cell, reports: list[Report]) -> list[bool]:
    """What Ray's ASHA says of the reports of one cell, were there no other: whether each stops its trial.

    It is told as Tune tells it: of trials when they start, of every report, and of the last one of a trial again.
    """
    mode = {"digits": "max", "zinc": "min", "enzymes": "max"}[cell.dataset]
    longest, grace, factor = (27, 1, 3) if cell.max_epochs == 27 else (9, 2, 2)
    asha = AsyncHyperBandScheduler(
        time_attr="epoch", metric="m", mode=mode, max_t=longest, grace_period=grace, reduction_factor=factor
    )
    trials: dict[str, SimpleNamespace] = {}
    stops = []
    for report in reports:
        if report.key not in trials:
            trials[report.key] = SimpleNamespace(trial_id=report.key)
            asha.on_trial_add(None, trials[report.key])
        result = {"epoch": report.epoch, "m": report.val_metric}
        stops.append(asha.on_trial_result(None, trials[report.key], result) == TrialScheduler.STOP)
        if stops[-1] or report.ended:
            asha.on_trial_complete(None, trials[report.key], result)
    return stops


def test_a_cell_prunes_as_a_lone_asha_on_its_reports(simulated: Simulated) -> None:
    of_cell: dict[str, list[Report]] = defaultdict(list)
    for report in simulated.line.reports:
        of_cell[report.cell].append(report)
    pruned: Counter[int] = Counter()
    for cell in simulated.plan.cells:
        reports = of_cell[cell.id]
        alone = lone_asha(cell, reports)
        # A trial that ends by itself is not called pruned, whatever ASHA says.
        assert [report.stopped for report in reports] == [
            stops and not report.ended for stops, report in zip(alone, reports, strict=True)
        ]
        pruned.update(report.epoch for report in reports if report.stopped)
    rungs = {"many": [1, 3, 9], "few": [2, 4, 8]}[simulated.plan.name]
    assert sorted(pruned) == rungs
    assert min(pruned.values()) >= 10, "a rung that prunes nobody shows nothing"
    assert any(report.ended and report.epoch in rungs for report in simulated.line.reports)


def test_slots_are_busy_until_fewer_trials_are_left_than_slots(simulated: Simulated) -> None:
    assert simulated.line.busy > 0.98
    before_the_tail = [stay for stay in simulated.line.stays if stay.ended <= simulated.line.tail_begins]
    assert len(before_the_tail) == len(simulated.line.stays) - simulated.line.slots + 1


def test_confirm_trials_follow_the_search_of_their_own_cell_at_once(simulated: Simulated) -> None:
    """From the end of a cell's search to the start of its last confirm trial, no search trial is given a slot."""
    line = simulated.line
    for cell in simulated.plan.cells:
        search, confirm = line.of(cell.id, "search"), line.of(cell.id, "confirm")
        assert max(stay.ended for stay in search) <= min(stay.began for stay in confirm)
        between = line.stays[line.search_ends[cell.id] : confirm[-1].place]
        assert {stay.phase for stay in between} <= {"confirm"}
    last_search = max(stay.ended for stay in line.stays if stay.phase == "search")
    early = [cell for cell in simulated.plan.cells if line.of(cell.id, "confirm")[0].began < last_search]
    assert len(early) == len(simulated.plan.cells) - 1, "all but the slowest confirm while it still searches"


def test_tune_looks_for_a_waiting_trial_among_the_live_ones_alone() -> None:
    live = [
        SimpleNamespace(trial_id="a_00002", status=Trial.RUNNING),
        SimpleNamespace(trial_id="a_00004", status=Trial.PENDING),
        SimpleNamespace(trial_id="a_00003", status=Trial.PENDING),
    ]
    scheduler = CoordinatedScheduler(Dispatch(None, Slots(total=3)))
    assert scheduler.choose_trial_to_run(SimpleNamespace(get_live_trials=lambda: live)).trial_id == "a_00003"
    assert scheduler.choose_trial_to_run(SimpleNamespace(get_live_trials=list)) is None
