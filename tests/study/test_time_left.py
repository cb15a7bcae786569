"""The estimate of the time left, by cases worked out by hand."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from study.stays import Stays
from study.tally import CellGoal, CellTally, UnderWay
from study.time_left import TimeLeft, time_left


@dataclass(frozen=True)
class Ended:
    phase: str
    status: str
    num_epochs: int
    seconds: float
    reason: str | None = None
    val_metric: float | None = 0.5


def goal(cell: str = "a", trials: int = 10, confirm: int = 4, max_epochs: int = 9) -> CellGoal:
    return CellGoal(
        cell=cell, metric="accuracy", direction="max", trials=trials, confirm_trials=confirm, max_epochs=max_epochs
    )


def tally(*ended: Ended) -> CellTally:
    found = CellTally()
    for trial in ended:
        found.add(trial, goal())
    return found


PRUNED = Ended("search", "pruned", 1, 2.0)
WHOLE = Ended("search", "finished", 9, 18.0)


def test_nothing_is_known_before_a_trial_has_ended() -> None:
    assert time_left([(goal(), tally())], {}, {}, slots=2) is None
    assert time_left([(goal(), tally(PRUNED))], {}, {}, slots=0) is None


def test_the_rest_is_taken_to_be_like_what_has_ended() -> None:
    # Of 10 search trials 2 ended, after 5 epochs on average; 2 s an epoch. Left: 8 x 5 + 4 x 9 = 76 epochs.
    cells = [(goal(), tally(PRUNED, WHOLE))]
    assert time_left(cells, {}, {}, slots=1) == TimeLeft(seconds=152.0, ended=2, borrowed=0)
    assert time_left(cells, {}, {}, slots=4) == TimeLeft(seconds=38.0, ended=2, borrowed=0)


@pytest.mark.parametrize(("repeated", "seconds"), [(0, 82.0), (5, 82.0), (8, 72.0)])
def test_no_more_search_trials_are_left_than_configurations(repeated: int, seconds: float) -> None:
    # Of 10 search trials 3 can differ, and 2 ended, after 5 epochs on average; 2 s an epoch. Left: 1 x 5 + 4 x 9 = 41
    # epochs; and 36 once the other 8 were found to be known.
    few = replace(goal(), trained=3)
    left = time_left([(few, tally(PRUNED, WHOLE))], {}, {"a": repeated}, slots=1)
    assert left == TimeLeft(seconds=seconds, ended=2, borrowed=0)


def test_it_ends_no_sooner_than_a_search_trial_and_a_confirm_trial_after_it() -> None:
    # 5 epochs, then 9; 2 s each.
    assert time_left([(goal(), tally(PRUNED, WHOLE))], {}, {}, slots=100) == TimeLeft(seconds=28.0, ended=2, borrowed=0)


def test_epochs_under_way_and_configurations_that_are_known_need_no_more_time() -> None:
    cells = [(goal(), tally(PRUNED, WHOLE))]
    found = time_left(cells, {"a": UnderWay(trials=2, epochs=6)}, {"a": 3}, slots=1)
    # Left: 5 search trials of 5 epochs, 4 of 9, less 6 that are done: 55 epochs.
    assert found == TimeLeft(seconds=110.0, ended=2, borrowed=0)


def test_in_the_tail_it_is_what_the_running_trials_lack() -> None:
    whole = [WHOLE] * 10 + [Ended("confirm", "finished", 9, 18.0)] * 2
    cells = [(goal(), tally(*whole))]
    # 2 confirm trials run on 8 slots, 8 of 9 epochs done each: one epoch of 2 s.
    assert time_left(cells, {"a": UnderWay(2, 16)}, {}, slots=8) == TimeLeft(seconds=2.0, ended=12, borrowed=0)


def test_confirm_trials_that_share_a_slot_follow_each_other() -> None:
    whole = [WHOLE] * 10
    together = replace(goal(), together=10)
    # 4 confirm trials of 9 epochs, of 2 s each as its share: 72 s in one slot, however many there are.
    assert time_left([(together, tally(*whole))], {}, {}, slots=8) == TimeLeft(seconds=72.0, ended=10, borrowed=0)
    # All four have 6 epochs behind them: 3 are left of each.
    under_way = {"a": UnderWay(4, 24)}
    assert time_left([(together, tally(*whole))], under_way, {}, slots=8) == TimeLeft(
        seconds=24.0, ended=10, borrowed=0
    )
    # A search trial comes first: one of 9 epochs, then the four.
    before = time_left([(together, tally(*whole[1:]))], {"a": UnderWay(1, 5)}, {}, slots=8)
    assert before == TimeLeft(seconds=2.0 * (4 + 36), ended=9, borrowed=0)


def test_what_trials_cost_beside_their_training_counts() -> None:
    # 12 trials are left, half a second each.
    assert time_left([(goal(), tally(PRUNED, WHOLE))], {}, {}, slots=1, overhead_s=0.5) == TimeLeft(
        seconds=158.0, ended=2, borrowed=0
    )


def test_a_cell_without_an_ended_trial_is_judged_by_the_others() -> None:
    cells = [(goal(), tally(PRUNED, WHOLE)), (goal("b", trials=2, confirm=0, max_epochs=18), tally())]
    # Search trials of the first went 5 of 9 epochs on average: 10 of 18; 2 s an epoch.
    found = time_left(cells, {}, {}, slots=1)
    assert found is not None
    assert (found.seconds, found.borrowed) == (pytest.approx(152.0 + 2 * 10 * 2.0), 1)


def test_where_no_search_trial_has_ended_one_is_taken_to_last_to_its_end() -> None:
    # Of cell a, without a search, 1 of 4 runs ended after 9 epochs of 2 s: 27 are left. Of b 10 x 9 and 4 x 9.
    first = goal(trials=0), tally(Ended("confirm", "finished", 9, 18.0))
    found = time_left([first, (goal("b"), tally())], {}, {}, slots=1)
    assert found == TimeLeft(seconds=2.0 * (27 + 90 + 36), ended=1, borrowed=1)


def test_trials_that_ended_before_their_first_epoch_tell_nothing_of_other_cells() -> None:
    # 3 trials of cell a failed at once: its other 7 are taken to do so too, its 4 runs to train for 9 epochs.
    # b has 8 x 5 + 4 x 9 left; c, of which nothing is known, is like b: 10 x 5 + 4 x 9. 2 s an epoch.
    failed = tally(*[Ended("search", "failed", 0, 0.0, "OSError", None)] * 3)
    cells = [(goal("a"), failed), (goal("b"), tally(PRUNED, WHOLE)), (goal("c"), tally())]
    assert time_left(cells, {}, {}, slots=1) == TimeLeft(seconds=2.0 * (36 + 76 + 86), ended=5, borrowed=2)


def test_a_search_that_chose_nothing_has_nothing_to_confirm() -> None:
    diverged = Ended("search", "diverged", 1, 2.0)
    found = time_left([(goal(trials=2), tally(diverged, diverged))], {}, {}, slots=1)
    assert found == TimeLeft(seconds=0.0, ended=2, borrowed=0)


def test_stays_tell_what_a_trial_costs_beside_its_training() -> None:
    now = 100.0
    stays = Stays(clock=lambda: now)
    stays.begin("a")
    stays.begin("b")
    stays.epochs["a"] = 4
    live = [Live("a", "one"), Live("b", "one"), Live("c", "two")]
    stays.start("a")
    assert stays.under_way(live) == {"one": UnderWay(2, 4, waiting=1), "two": UnderWay(1, 0, waiting=1)}
    now = 103.0
    stays.end("a", trained_s=2.5)
    now = 104.0
    stays.end("b", trained_s=60.0)  # it went on from a checkpoint
    assert stays.overhead_s == 0.25
    stays.lose("c")


@dataclass(frozen=True)
class Live:
    key: str
    cell: str
