"""What a signal means, by what went before; and real signals to processes that do something else meanwhile."""

from __future__ import annotations

import time

import pytest

from study.interruption import PATIENCE_S, Heard, Interruption


def test_while_trials_run_the_first_asks_the_second_unwinds_and_the_third_ends() -> None:
    interruption = Interruption()
    with interruption.heeding():
        assert not interruption.requested
        assert interruption.hear() is Heard.ASKS
        assert (interruption.requested, interruption.stops) == (True, False)
        interruption.raise_if_due()
        assert interruption.hear() is Heard.STOPS
        with pytest.raises(KeyboardInterrupt):
            interruption.raise_if_due()
        interruption.raise_if_due()  # once: what unwinds is not interrupted
        assert interruption.hear() is Heard.ENDS


def test_before_and_after_trials_the_first_unwinds() -> None:
    before, after = Interruption(), Interruption()
    with after.heeding():
        pass
    for interruption in (before, after):
        assert interruption.hear() is Heard.STOPS
        assert interruption.requested
        assert interruption.hear() is Heard.ENDS


def test_who_asked_while_trials_ran_asks_once() -> None:
    interruption = Interruption()
    with interruption.heeding():
        interruption.request()
    assert interruption.hear() is Heard.STOPS


def test_what_must_not_be_left_half_way_is_unwound_at_its_end() -> None:
    interruption = Interruption()
    done = []

    def work() -> None:
        with interruption.undisturbed():
            with interruption.undisturbed():
                assert interruption.hear() is Heard.STOPS
                interruption.raise_if_due()
                done.append("inner")
            interruption.raise_if_due()
            done.append("outer")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["inner", "outer"]


def test_at_the_end_of_the_program_nothing_is_raised() -> None:
    interruption = Interruption()
    interruption.unwound()
    assert interruption.hear() is Heard.STOPS
    interruption.raise_if_due()


def test_an_end_in_good_order_takes_the_time_that_it_takes_and_all_else_has_a_limit() -> None:
    asked, stopped = Interruption(), Interruption()
    asked.patience_s = stopped.patience_s = 0.0
    with asked.heeding():
        asked.hear()
        stopped.hear()
        until = time.monotonic()
        while time.monotonic() == until:
            pass
        assert (asked.overdue, stopped.overdue) == (False, True)
    with asked.undisturbed():
        until = time.monotonic()
        while time.monotonic() == until:
            pass
        assert asked.overdue


def test_a_pause_ends_when_the_end_is_asked_for() -> None:
    interruption = Interruption()
    interruption.pause(0)
    interruption.request()
    with pytest.raises(KeyboardInterrupt):
        interruption.pause(60)


def test_where_nobody_would_answer_patience_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("study.interruption.time.monotonic", lambda: now)
    interruption = Interruption()
    interruption.patience_s = 20.0
    interruption.hurry()
    assert interruption.hear() is Heard.STOPS
    now = 100.0 + PATIENCE_S
    assert not interruption.overdue
    now += 0.1
    assert interruption.overdue
