"""The faults: each function causes one, and says what it did and what was seen."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from benchmarks.faults.disks import fill, read_only, small_disk
from benchmarks.faults.hungry import APPETITE
from benchmarks.faults.node_scenarios import NODE_SCENARIOS
from benchmarks.faults.scene import (
    Running,
    Stage,
    in_words,
    live_record,
    mirror_is_whole,
    records,
    same_numbers,
    study_text,
)
from benchmarks.faults.seen import Seen, same_in_words, told, undisturbed, yes

KILLED_BY_RAY = "benchmarks.faults.hungry:Large"
REFUSED_BY_TORCH = "benchmarks.faults.hungry:Impossible"
GIB = 2**30
SECRET = "hunter2secret"
WAITS_S = 4.0
"""How long a store stays bad once the study has told of it: long enough for more than one try."""


LEFT_ALONE_S = 60.0
"""How long the processes of a dead driver have to end by themselves."""


def refused_memory(stage: Stage) -> Seen:
    """Host memory that PyTorch's allocator cannot get, from a layer of the user's own."""
    results = stage.folder / "refused_memory"
    running = stage.run(study_text(backbone=REFUSED_BY_TORCH, trials=2, beside=2), results)
    code = running.end()
    found = records(results)
    good = code == 1 and all("even with a node to itself" in (record.reason or "") for record in found)
    good = good and sum("once it can have a node to itself" in line for line in running.err) == len(found) == 2
    return Seen(
        "a layer asks torch for 2^46 bytes at each step; two trials, two slots",
        (*told(running), f"exit code {code}; {in_words(results)}"),
        good,
    )


def killed_by_memory_monitor(stage: Stage) -> Seen:
    """A node that two trials fill: Ray's memory monitor kills a worker, which then runs alone."""
    results = stage.folder / "memory_monitor"
    memory = psutil.virtual_memory()
    used = memory.total - memory.available
    # Of what the study itself takes beside its trials' appetites: a driver and two workers.
    threshold = (used + 1.6 * GIB + 3 * GIB) / memory.total
    running = stage.run(
        study_text(backbone=KILLED_BY_RAY, epochs=2, trials=2, beside=2),
        results,
        environment={
            APPETITE: str(2 * GIB),
            "RAY_memory_usage_threshold": f"{threshold:.4f}",
            "RAY_memory_monitor_refresh_ms": "100",
        },
    )
    code = running.end()
    good = code == 0 and any("out of host memory" in line for line in running.err)
    return Seen(
        "a layer fills 2 GiB in each evaluation, on a node whose memory monitor lets one such trial live, not two",
        (*told(running), f"exit code {code}; {in_words(results)}"),
        good and {record.status for record in records(results)} == {"finished"},
    )


def killed_worker(stage: Stage) -> Seen:
    """SIGKILL to the worker in mid-trial."""
    results = stage.folder / "killed_worker"
    running = stage.run(study_text(), results)
    before = running.until(lambda: live_record(results, epochs=2), "two epochs")
    running.worker().kill()
    code = running.end()
    after = next(record for record in records(results) if record.key == before.key)
    kept = after.epochs[: before.num_epochs] == before.epochs
    same = same_numbers(results, undisturbed(stage))
    return Seen(
        f"SIGKILL to the worker after epoch {before.num_epochs} of a trial",
        (
            *told(running),
            f"exit code {code}; {in_words(results)}; its first {before.num_epochs} epochs were "
            f"{'kept' if kept else 'trained again'}; {same_in_words(same)}",
        ),
        code == 0 and kept and same,
    )


def worker_killed_again_and_again(stage: Stage) -> Seen:
    """SIGKILL to every worker of one trial, and the study started once more."""
    results = stage.folder / "killed_often"
    running = stage.run(study_text(), results)
    for times in range(1, 4):
        running.until(lambda: live_record(results), "an epoch")
        worker = running.worker()
        worker.kill()
        worker.wait()
        if times < 3:
            running.until_told(f"(try {times + 1} of 3)")
            running.until(
                lambda: any("ImplicitFunc" in " ".join(each.cmdline()) for each in _alive(running)), "a worker"
            )
    code = running.end()
    first = in_words(results)
    again = stage.run(study_text(), results).end()
    same = same_numbers(results, undisturbed(stage))
    return Seen(
        "SIGKILL to three workers of one trial, one after the other; then the same command again",
        (
            *told(running),
            f"exit code {code}; {first}",
            f"started again: exit code {again}; {in_words(results)}; {same_in_words(same)}",
        ),
        code == 1 and again == 0 and same,
    )


def full_disk(stage: Stage) -> Seen:
    """A disk that gets full in mid-study, and has room again later."""
    with small_disk(stage.folder / "disk", "24m") as disk:
        results = disk / "results"

        def spoil() -> Callable[[], object]:
            return fill(disk).unlink

        return _bad_store(stage, results, spoil, "a file fills the results' disk (24 MiB) to its last byte, then goes")


def read_only_store(stage: Stage) -> Seen:
    """A results folder that may not be written for a while."""
    results = stage.folder / "read_only"

    def spoil() -> Callable[[], object]:
        mounted = read_only(results)
        mounted.__enter__()
        return lambda: mounted.__exit__(None, None, None)

    return _bad_store(stage, results, spoil, "the results folder is mounted read-only over itself, then not any more")


def store_away(stage: Stage) -> Seen:
    """A results folder that vanishes, as where a disk is not mounted, and comes back."""
    results = stage.folder / "away"

    def spoil() -> Callable[[], object]:
        moved = results.rename(results.with_name("elsewhere"))
        return lambda: moved.rename(results)

    return _bad_store(stage, results, spoil, "the results folder is renamed, then named as before")


def _bad_store(stage: Stage, results: Path, spoil: Callable[[], Callable[[], object]], caused: str) -> Seen:
    running = stage.run(study_text(), results)
    before = running.until(lambda: live_record(results, epochs=2), "two epochs")
    mend = spoil()
    try:
        running.until_told("cannot be written (")
        time.sleep(WAITS_S)
    finally:
        mend()
    code = running.end()
    after = next(record for record in records(results) if record.key == before.key)
    kept = after.epochs[: before.num_epochs] == before.epochs
    same = same_numbers(results, undisturbed(stage))
    left = [path.name for path in (results / "live").iterdir()]
    lines = told(running)
    mirrored = mirror_is_whole(results)
    once = sum("what must be kept waits" in line for line in lines) == 1
    return Seen(
        f"after epoch {before.num_epochs} of a trial {caused}",
        (
            *lines,
            f"exit code {code}; {in_words(results)}; epochs kept: {yes(kept)}; {same_in_words(same)}; "
            f"all in MLflow, once: {yes(mirrored)}",
        ),
        code == 0 and kept and same and once and mirrored and not left,
    )


def ctrl_c(stage: Stage) -> Seen:
    """One Ctrl-C in mid-trial, then the same command again."""
    results = stage.folder / "ctrl_c"
    running = stage.run(study_text(epochs=6), results)
    before = running.until(lambda: live_record(results, epochs=2), "two epochs")
    running.press()
    code = running.end()
    left = live_record(results)
    again = stage.run(study_text(epochs=6), results).end()
    after = next(record for record in records(results) if record.key == before.key)
    kept = left is not None and after.epochs[: left.num_epochs] == left.epochs
    same = same_numbers(results, undisturbed(stage))
    return Seen(
        f"SIGINT to the group of processes once, after epoch {before.num_epochs} of a trial; the same command again",
        (
            *told(running),
            f"exit code {code}; on disk then: {left.num_epochs if left else 0} epochs and their checkpoint",
            f"started again: exit code {again}; {in_words(results)}; epochs kept: {yes(kept)}; {same_in_words(same)}",
        ),
        code == 130 and again == 0 and kept and same,
    )


def ctrl_c_twice(stage: Stage) -> Seen:
    """Two presses of Ctrl-C within an epoch that would take long."""
    results = stage.folder / "ctrl_c_twice"
    text = study_text(backbone=KILLED_BY_RAY, trials=2)
    running = stage.run(text, results, environment={APPETITE: "1"})
    running.until(lambda: list((results / "live").iterdir()) if (results / "live").exists() else [], "a trial")
    worker = running.worker()
    worker.suspend()  # its epoch does not end any more
    running.press()
    line = running.until_told("stopping:")
    began = time.monotonic()
    running.press()
    code = running.end()
    seconds = time.monotonic() - began
    gone = not worker.is_running()
    return Seen(
        "SIGINT to the group of processes, with the worker suspended so that its epoch does not end; SIGINT again",
        (
            *told(running),
            f"exit code {code}, {seconds:.0f} s after the second; the worker is {'gone' if gone else 'LEFT'}",
        ),
        code == 130 and bool(line) and gone,
    )


def ctrl_c_while_the_store_is_away(stage: Stage) -> Seen:
    """One Ctrl-C while the study waits for its results folder."""
    results = stage.folder / "ctrl_c_away"
    running = stage.run(study_text(), results)
    before = running.until(lambda: live_record(results, epochs=2), "two epochs")
    moved = results.rename(results.with_name("elsewhere"))
    running.until_told("cannot be written (")
    running.press()
    began = time.monotonic()
    code = running.end()
    seconds = time.monotonic() - began
    anew = results.exists()
    if not anew:
        moved.rename(results)
    again = stage.run(study_text(), results).end()
    after = next(record for record in records(results) if record.key == before.key)
    kept = after.epochs[: before.num_epochs] == before.epochs
    same = same_numbers(results, undisturbed(stage))
    return Seen(
        "the results folder is renamed; once the study has told of it, SIGINT; named as before, the same command again",
        (
            *told(running),
            f"exit code {code}, {seconds:.0f} s after the signal; made anew in the place of the missing: {yes(anew)}",
            f"started again: exit code {again}; {in_words(results)}; epochs kept: {yes(kept)}; {same_in_words(same)}",
        ),
        code == 130 and again == 0 and kept and same and not anew,
    )


def killed_driver(stage: Stage) -> Seen:
    """SIGKILL to the driver in mid-trial, then the same command again."""
    results = stage.folder / "killed_driver"
    running = stage.run(study_text(), results)
    before = running.until(lambda: live_record(results, epochs=2), "two epochs")
    others = {each: " ".join(each.cmdline())[:60] for each in running.processes()[1:]}
    running.process.send_signal(signal.SIGKILL)
    running.end()
    _, left = psutil.wait_procs(others, timeout=LEFT_ALONE_S)
    # Who has no parent any more, and nobody who asks for its end, is dead all the same.
    alive = [each for each in left if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
    trains = [each for each in alive if "ImplicitFunc" in others[each]]
    again = stage.run(study_text(), results).end()
    after = next(record for record in records(results) if record.key == before.key)
    kept = after.epochs[: before.num_epochs] == before.epochs
    same = same_numbers(results, undisturbed(stage))
    return Seen(
        f"SIGKILL to the driver after epoch {before.num_epochs} of a trial; the same command again",
        (
            f"of {len(others)} processes that it had started, {len(alive)} ran on after {LEFT_ALONE_S:g} s"
            + "".join(f", {others[each].split()[0]}" for each in alive),
            f"started again: exit code {again}; {in_words(results)}; epochs kept: {yes(kept)}; {same_in_words(same)}",
        ),
        again == 0 and kept and same and not trains,
    )


def listeners(stage: Stage) -> Seen:
    """What a study listens at, as ``ss -ltnp`` shows it, for its own processes."""
    results = stage.folder / "listeners"
    running = stage.run(study_text(), results)
    running.until(lambda: live_record(results), "an epoch")
    heard = {
        (each.name(), connection.laddr.ip, connection.laddr.port)
        for each in running.processes()
        for connection in each.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }
    foreign = sorted(entry for entry in heard if entry[1].removeprefix("::ffff:") not in ("127.0.0.1", "::1"))
    running.end()
    return Seen(
        "a study runs; every listening socket of the driver and of what it started",
        (f"{len(heard)} sockets, {len(heard) - len(foreign)} of them on loopback", *map(str, foreign)),
        bool(heard) and not foreign,
    )


def secret_address(stage: Stage) -> Seen:
    """A tracking server whose URL holds a password, and which refuses everybody."""
    results = stage.folder / "secret"
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_refuse, args=(server,), daemon=True).start()
        uri = f"http://ann:{SECRET}@127.0.0.1:{server.getsockname()[1]}/?api_key={SECRET}"
        running = stage.run(study_text(trials=1, epochs=2), results, "--mlflow", uri)
        code = running.end()
    places = [path for folder in (results, stage.folder / "ray") for path in _holding(folder, SECRET.encode())]
    shown = [line for line in (*running.out, *running.err) if SECRET in line]
    return Seen(
        "--mlflow http://ann:PASSWORD@127.0.0.1:PORT/?api_key=PASSWORD, where a server answers 403 to everything",
        (
            *told(running),
            f"exit code {code}; files of results and of Ray's logs that hold the password: {len(places)}; "
            f"lines on the screen that do: {len(shown)}",
            *(str(path.relative_to(stage.folder)) for path in places),
        ),
        code == 0 and not places and not shown,
    )


SCENARIOS = (
    refused_memory,
    killed_by_memory_monitor,
    killed_worker,
    worker_killed_again_and_again,
    *NODE_SCENARIOS,
    full_disk,
    read_only_store,
    store_away,
    ctrl_c,
    ctrl_c_twice,
    ctrl_c_while_the_store_is_away,
    killed_driver,
    listeners,
    secret_address,
)


def _alive(running: Running) -> list[psutil.Process]:
    return [each for each in running.processes() if each.status() != psutil.STATUS_ZOMBIE]


def _holding(folder: Path, secret: bytes) -> list[Path]:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sorted(path for path in files if secret in path.read_bytes())


def _refuse(server: socket.socket) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:  # the block has ended
            return
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
