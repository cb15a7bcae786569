"""Real signals to this process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from study.interruption import Interruption

BOTH = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in BOTH}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def ours(number: int, frame: Any) -> None:
    raise AssertionError("not ours to hear")


@pytest.mark.parametrize("first", BOTH)
@pytest.mark.parametrize("second", BOTH)
def test_the_first_signal_asks_and_the_second_stops(first: signal.Signals, second: signal.Signals) -> None:
    for number in BOTH:
        signal.signal(number, ours)
    with Interruption() as interruption:
        assert not interruption.requested
        signal.raise_signal(first)
        assert interruption.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(second)
    assert [signal.getsignal(number) for number in BOTH] == [ours, ours]


def test_a_ctrl_c_that_a_shell_had_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGINT)
        assert not interruption.requested
        signal.raise_signal(signal.SIGTERM)
        assert interruption.requested
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_pause_ends_with_the_signal() -> None:
    signal.signal(signal.SIGINT, ours)  # a shell's background job may have it ignored
    with Interruption() as interruption:
        interruption.pause(0)
        timer = threading.Timer(0, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            interruption.pause(60)
        timer.join()


def test_in_another_thread_signals_are_left_alone() -> None:
    before = [signal.getsignal(number) for number in BOTH]
    seen: list[list[Any]] = []

    def enter() -> None:
        with Interruption():
            seen.append([signal.getsignal(number) for number in BOTH])

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [before]
