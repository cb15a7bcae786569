"""SIGINT, SIGTERM and SIGHUP from the first line of a program to its last.

Ray's C++ part takes SIGTERM for itself when it starts, and then dies of it with its stack on the screen; and Python
runs no handler while the main thread is in C++. So these signals are blocked, in every thread, and one thread waits for
them. It reaches the main thread by a signal that means nothing else, and can end the program without its help.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import FrameType
from typing import NoReturn

import psutil

from study.interruption import Heard, Interruption

TAKEN = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

LAST_ACTS_S = 3.0
"""How long the last acts may take together: a store that hangs must not keep the program from ending."""

_TO_MAIN_THREAD = signal.SIGURG
"""By default it is ignored: who sends it for another reason does no harm."""

_LOOK_EVERY_S = 0.1


class ProcessSignals:
    """The signals of this process, for the whole of its life.

    Those that are ignored when it starts stay so: SIGHUP under nohup, SIGINT in a shell's background job. Programs that
    it starts inherit what is blocked; :mod:`study.ray_session` lifts that for Ray's.

    Args:
        interruption: hears of them.
        exit_code: of a program that they ended.
    """

    def __init__(self, interruption: Interruption, exit_code: int) -> None:
        self._interruption = interruption
        self._exit_code = exit_code
        self._taken: tuple[signal.Signals, ...] = ()
        self._screen = os.dup(2)
        self._terminals = tuple(number for number in (1, 2) if os.isatty(number))
        self._ending = threading.Lock()
        self._silent = False

    def take(self) -> None:
        """Begin; call it first, in the main thread: other threads inherit what is blocked.

        Raises:
            KeyboardInterrupt: a signal has come already.
        """
        self._taken = tuple(number for number in TAKEN if signal.getsignal(number) is not signal.SIG_IGN)
        signal.signal(_TO_MAIN_THREAD, self._reached)
        for number in self._taken:
            # multiprocessing unblocks them in the thread that uses it.
            signal.signal(number, self._not_blocked)
        self.block()
        threading.Thread(target=self._listen, name="signals", daemon=True).start()
        threading.Thread(target=self._see_to_the_end, name="end", daemon=True).start()

    def block(self) -> None:
        """Block the signals in this thread, and so in those that it starts."""
        signal.pthread_sigmask(signal.SIG_BLOCK, self._taken)

    def settle(self) -> None:
        """At the end of the program: end it here, with its line, if it was stopped; else return."""
        self._interruption.unwound()
        if self._interruption.stops:
            self.end_now()

    def leave(self) -> None:
        """End here, after what the program has said by itself: in what the interpreter does last, signals are lost."""
        self._end("")

    def end_now(self) -> None:
        """End here, from any thread: say the last words, end what was started, do the last acts."""
        self._end(f"{self._interruption.last_words}\n")

    def _end(self, words: str) -> None:
        if not self._ending.acquire(blocking=False):
            while True:  # another thread does it
                time.sleep(1)
        with suppress(OSError):
            os.write(self._screen, words.encode())
        self._silence()
        end_here(self._interruption.last_acts, self._exit_code)

    def _silence(self) -> None:
        """From now on nobody is to read what unwinding, or Ray's C++ part, writes to the screen."""
        _lead_nowhere(2)
        self._silent = True

    def _leave_closed_terminal(self) -> None:
        """To write to a terminal that was closed is an error, wherever the program happens to do it."""
        for number in self._terminals:
            if not os.isatty(number):
                _lead_nowhere(number)

    def _listen(self) -> None:
        while True:
            signal.sigwait(self._taken)
            self._heed()

    def _heed(self) -> None:
        self._leave_closed_terminal()
        heard = self._interruption.hear()
        if heard is Heard.ENDS:
            self.end_now()
        elif heard is Heard.STOPS:
            self._silence()
            self._wake()

    def _wake(self) -> None:
        """Reach the main thread, as often as it takes: a call that begins just as it is woken sleeps on."""
        if self._silent and not self._interruption.unwinds:
            signal.pthread_kill(_main_thread(), _TO_MAIN_THREAD)

    def _see_to_the_end(self) -> None:
        """End what has been asked to end and does not."""
        self._interruption.wait()
        while not self._interruption.lost():
            if self._interruption.overdue:
                self.end_now()
            self._wake()
            time.sleep(_LOOK_EVERY_S)
        self._interruption.hurry()
        if not self._interruption.stops:
            self._heed()
        while not self._interruption.overdue:
            self._wake()
            time.sleep(_LOOK_EVERY_S)
        self.end_now()

    def _reached(self, number: int, frame: FrameType | None) -> None:
        self._interruption.raise_if_due()

    def _not_blocked(self, number: int, frame: FrameType | None) -> None:
        self.block()
        self._heed()


def end_here(last_acts: Iterable[Callable[[], object]], exit_code: int) -> NoReturn:
    """End the program where it is, from any thread: end what it started, do the last acts, unwind nothing."""

    def act_at_last() -> None:
        for act in (*last_acts, sys.stdout.flush):
            with suppress(Exception):
                act()

    if os.isatty(1):
        with suppress(OSError):
            os.write(1, b"\x1b[?25h")  # a live view hides the cursor
    kill(psutil.Process().children(recursive=True))
    acts = threading.Thread(target=act_at_last, daemon=True)
    acts.start()
    acts.join(LAST_ACTS_S)
    os._exit(exit_code)


def kill(processes: Iterable[psutil.Process]) -> None:
    """SIGKILL to each that is still there."""
    for process in processes:
        with suppress(psutil.Error):
            process.kill()


def _lead_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


def _main_thread() -> int:
    identity = threading.main_thread().ident
    assert identity is not None  # it has begun
    return identity
