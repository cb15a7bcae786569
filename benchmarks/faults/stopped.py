"""A study that is stopped by other things than Ctrl-C, and at other moments than in mid-trial."""

from __future__ import annotations

import os
import pty
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil

from benchmarks.faults.scene import Running, Stage, in_words, live_record, records, same_numbers, study_text
from benchmarks.faults.seen import Seen, same_in_words, told, undisturbed, yes

GOES_ON = "stopped; nothing that ended is lost; the same command goes on in "


def sigterm_to_the_group(stage: Stage) -> Seen:
    """SIGTERM to the group of processes, as batch systems and containers send it."""
    return _stopped_in_mid_trial(
        stage, "sigterm_group", lambda running: running.press(signal.SIGTERM), "SIGTERM to the group of processes"
    )


def sigterm_to_all_processes(stage: Stage) -> Seen:
    """SIGTERM to the driver and to all that Ray started, as systemd sends it."""

    def end(running: Running) -> None:
        for each in running.processes():
            with suppress(psutil.NoSuchProcess):
                each.terminate()

    return _stopped_in_mid_trial(stage, "sigterm_all", end, "SIGTERM to the driver and to every process of its Ray")


def closed_terminal(stage: Stage) -> Seen:
    """A terminal that closes over a run, as where an ssh connection breaks."""
    terminal, end = pty.openpty()
    return _stopped_in_mid_trial(
        stage, "closed_terminal", lambda running: os.close(terminal), "the terminal of the run is closed", terminal=end
    )


def stopped_while_it_starts(stage: Stage) -> Seen:
    """One signal, or two, at moments from the first line of the program to the first trial."""
    lines = []
    good = True
    for number, (moment, there, signals) in enumerate(MOMENTS):
        results = stage.folder / f"start_{number}"
        running = stage.run(study_text(), results)
        running.until(partial(there, running, results), moment)
        others = running.processes()[1:]
        began = time.monotonic()
        for each in signals:
            running.press(each)
        code = running.end()
        seconds = time.monotonic() - began
        left = [each for each in others if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
        free = all(lease.with_suffix(".end").exists() for lease in (results / "lease").glob("*.json"))
        said = [line for line in running.err if line.strip()]
        good = good and code == 130 and len(said) == 1 and said[0].startswith("stopped") and not left and free
        names = " and ".join(each.name for each in signals)
        lines.append(
            f"{names} {moment}: exit code {code} after {seconds:.1f} s, {len(said)} line, {len(left)} processes left, "
            f"folder given back: {yes(free)}"
        )
    return Seen("signals to the group of processes of runs that have just begun", tuple(lines), good)


def _stopped_in_mid_trial(
    stage: Stage, name: str, end: Callable[[Running], object], caused: str, terminal: int | None = None
) -> Seen:
    results = stage.folder / name
    running = stage.run(study_text(), results, terminal=terminal)
    if terminal is not None:
        os.close(terminal)
    before = running.until(lambda: live_record(results, epochs=2), "two epochs")
    others = running.processes()[1:]
    began = time.monotonic()
    end(running)
    code = running.end()
    seconds = time.monotonic() - began
    left = [each for each in others if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
    said = [line for line in running.err if line.strip()]
    ends_well = terminal is not None or (said[-1].startswith(GOES_ON) and not any("GCS" in line for line in said))
    again = stage.run(study_text(), results).end()
    after = next(record for record in records(results) if record.key == before.key)
    kept = after.epochs[: before.num_epochs] == before.epochs
    same = same_numbers(results, undisturbed(stage))
    return Seen(
        f"{caused} after epoch {before.num_epochs} of a trial; then the same command",
        (
            *told(running),
            f"exit code {code} after {seconds:.0f} s, {len(left)} of its processes left",
            f"started again: exit code {again}; {in_words(results)}; epochs kept: {yes(kept)}; {same_in_words(same)}",
        ),
        (code, again) == (130, 0) and not left and ends_well and kept and same,
    )


def _hears_signals(running: Running, results: Path) -> bool:
    status = Path(f"/proc/{running.process.pid}/status").read_text().splitlines()
    blocked = next(int(line.split()[1], 16) for line in status if line.startswith("SigBlk"))
    return bool(blocked & 1 << signal.SIGTERM - 1)


def _has_folder(running: Running, results: Path) -> bool:
    return any((results / "lease").glob("*.json"))


def _has_begun(name: str) -> Callable[[Running, Path], bool]:
    def has_begun(running: Running, results: Path) -> bool:
        for each in running.processes():
            with suppress(psutil.NoSuchProcess):
                if each.name().startswith(name):
                    return True
        return False

    return has_begun


def _says_slots(running: Running, results: Path) -> bool:
    return any("one at a time" in line for line in running.out)


MOMENTS: tuple[tuple[str, Callable[[Running, Path], bool], tuple[signal.Signals, ...]], ...] = (
    ("as soon as they are heard", _hears_signals, (signal.SIGTERM,)),
    ("once it has its folder", _has_folder, (signal.SIGHUP,)),
    ("once Ray's head has begun", _has_begun("gcs_server"), (signal.SIGTERM,)),
    ("once its raylet has", _has_begun("raylet"), (signal.SIGINT,)),
    ("at the same moment", _has_begun("raylet"), (signal.SIGTERM, signal.SIGTERM)),
    ("once a worker has", _has_begun("ray::"), (signal.SIGTERM,)),
    ("once the slots are known", _says_slots, (signal.SIGINT, signal.SIGTERM, signal.SIGTERM)),
)

STOP_SCENARIOS = (sigterm_to_the_group, sigterm_to_all_processes, closed_terminal, stopped_while_it_starts)
