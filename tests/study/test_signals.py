"""Real signals to small programs that hear them as ``run_study.py`` does."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from pathlib import Path

import psutil
import pytest

from study.signals import TAKEN

ROOT = Path(__file__).parents[2]

PROGRAM = """
import signal, subprocess, sys, time
from pathlib import Path
from study.interruption import Interruption
from study.signals import ProcessSignals

interruption = Interruption()
interruption.last_words = "stopped; it goes on"
signals = ProcessSignals(interruption, 130)

def say(word):
    print(word, flush=True)

def main():
{main}

try:
    try:
        signals.take()
        main()
    finally:
        signals.settle()
except KeyboardInterrupt:
    signals.end_now()
"""


def started(main: str, *, ignored: signal.Signals | None = None, terminal: int | None = None) -> subprocess.Popen[str]:
    """A program with this as its main function, on pipes or on a terminal."""

    def begin() -> None:
        if terminal is not None:
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        for number in TAKEN:  # whatever the tests were started from
            signal.signal(number, signal.SIG_IGN if number is ignored else signal.SIG_DFL)

    body = "\n".join(f"    {line}" for line in main.strip().splitlines())
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(main=body)],
        cwd=ROOT,
        stdin=subprocess.PIPE if terminal is None else terminal,
        stdout=subprocess.PIPE if terminal is None else terminal,
        stderr=subprocess.PIPE if terminal is None else terminal,
        text=True,
        start_new_session=True,
        preexec_fn=begin,
    )


def until(program: subprocess.Popen[str], word: str) -> None:
    assert program.stdout is not None
    line = program.stdout.readline()
    assert line == f"{word}\n", (line, program.stderr and program.stderr.read())


def ended(program: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = program.communicate(timeout=60)
    return program.returncode, out, err


@pytest.mark.parametrize("number", TAKEN)
def test_it_unwinds_and_says_so_in_one_line(number: signal.Signals) -> None:
    program = started("""
try:
    say("ready")
    time.sleep(600)
finally:
    sys.stderr.write("nobody is to read this")
    say("unwound")
""")
    until(program, "ready")
    program.send_signal(number)
    assert ended(program) == (130, "unwound\n", "stopped; it goes on\n")


def test_a_wake_that_is_lost_comes_again() -> None:
    """As where the main thread enters a call just as it is woken: the call has not begun, and sleeps on."""
    program = started("""
reach, kill = signal.pthread_kill, []

def lost_at_first(*told):
    kill.append(told)
    if len(kill) > 1:
        reach(*told)

signal.pthread_kill = lost_at_first
try:
    say("ready")
    time.sleep(600)
finally:
    say("unwound")
""")
    until(program, "ready")
    program.terminate()
    assert ended(program) == (130, "unwound\n", "stopped; it goes on\n")


def test_a_handler_that_a_library_puts_in_its_place_is_never_reached() -> None:
    program = started("""
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, signal.SIG_DFL)
say("ready")
time.sleep(600)
""")
    until(program, "ready")
    program.terminate()
    assert ended(program) == (130, "", "stopped; it goes on\n")


def test_a_library_that_unblocks_them_does_no_harm() -> None:
    program = started("""
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
say("ready")
time.sleep(600)
""")
    until(program, "ready")
    program.terminate()
    assert ended(program) == (130, "", "stopped; it goes on\n")


def test_what_does_not_unwind_is_ended_with_what_it_started_and_the_last_acts_are_done(tmp_path: Path) -> None:
    program = started(f"""
interruption.patience_s = 0.2
interruption.last_acts.append(lambda: Path({str(tmp_path / "act")!r}).touch())
interruption.last_acts.append(lambda: time.sleep(600))
import study.signals
study.signals.LAST_ACTS_S = 0.5
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
say(child.pid)
with interruption.undisturbed():
    say("ready")
    time.sleep(600)
""")
    assert program.stdout is not None
    child = psutil.Process(int(program.stdout.readline()))
    until(program, "ready")
    program.terminate()
    assert ended(program) == (130, "", "stopped; it goes on\n")
    assert (tmp_path / "act").exists()
    psutil.wait_procs([child], timeout=30)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_a_second_signal_while_it_unwinds_ends_it() -> None:
    program = started("""
interruption.patience_s = 600
try:
    say("ready")
    time.sleep(600)
finally:
    say("unwinds")
    time.sleep(600)
""")
    until(program, "ready")
    program.send_signal(signal.SIGINT)
    until(program, "unwinds")
    program.send_signal(signal.SIGTERM)
    assert ended(program) == (130, "", "stopped; it goes on\n")


def test_while_trials_run_the_first_only_asks() -> None:
    program = started("""
with interruption.heeding():
    say("ready")
    interruption.wait()
say("ended in good order")
""")
    until(program, "ready")
    program.send_signal(signal.SIGINT)
    assert ended(program) == (0, "ended in good order\n", "")


def test_an_end_in_good_order_that_cannot_come_is_not_waited_for() -> None:
    program = started("""
interruption.lost = lambda: True
with interruption.heeding():
    say("ready")
    time.sleep(600)
""")
    until(program, "ready")
    program.terminate()
    assert ended(program) == (130, "", "stopped; it goes on\n")


def test_what_is_said_to_a_terminal_that_was_closed_is_no_error(tmp_path: Path) -> None:
    terminal, end = pty.openpty()
    text = f"""
with interruption.heeding():
    say("ready")
    interruption.wait()
for stream in (sys.stdout, sys.stderr):
    stream.write("a line\\n")
    stream.flush()
Path({str(tmp_path / "written")!r}).touch()
"""
    program = started(text, terminal=end)
    os.close(end)
    with os.fdopen(terminal, "rb", buffering=0) as screen:
        assert screen.readline() == b"ready\r\n"
    assert program.wait(timeout=60) == 0
    assert (tmp_path / "written").exists()


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_what_was_ignored_stays_ignored(number: signal.Signals) -> None:
    program = started(
        """
say("ready")
sys.stdin.readline()
say("went on")
""",
        ignored=number,
    )
    until(program, "ready")
    program.send_signal(number)
    out, err = program.communicate("\n", timeout=60)
    assert (program.returncode, out, err) == (0, "went on\n", "")
