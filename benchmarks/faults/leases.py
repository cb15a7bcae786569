"""Faults of object stores, and of two runs on one results folder."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from benchmarks.faults.scene import (
    Stage,
    in_words,
    live_record,
    records,
    same_numbers,
    study_text,
)
from benchmarks.faults.seen import Seen, same_in_words, told, undisturbed
from study.lease_holder import EXPIRES_S, last_holder
from study.location import location
from study.results import ResultsFolder

BUCKET = "studies"
ELSEWHERE = (
    "unshare",
    "--uts",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
    "sh",
    "-c",
    'hostname node-b; exec "$@"',
    "sh",
)
"""What a program is given to that shall run on a host of another name, with process numbers of its own."""


class ObjectStore:
    """A server that speaks S3, on loopback; what it holds outlives its being away."""

    def __init__(self) -> None:
        from moto.server import ThreadedMotoServer

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._make = ThreadedMotoServer
        self._server = self._make(ip_address="127.0.0.1", port=0)
        self._server.start()
        _, self._port = self._server.get_host_and_port()

    @property
    def environment(self) -> dict[str, str]:
        """By which clients find it."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._port}",
            "AWS_ACCESS_KEY_ID": "anybody",
            "AWS_SECRET_ACCESS_KEY": "anything",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def go_away(self) -> None:
        """Refuse every connection."""
        self._server.stop()

    def come_back(self) -> None:
        """Answer again, at the same address."""
        self._server = self._make(ip_address="127.0.0.1", port=self._port)
        self._server.start()


@contextmanager
def object_store(results: str) -> Iterator[tuple[ObjectStore, Path]]:
    """A store with a bucket, and a place for results in it."""
    import boto3
    from s3fs import S3FileSystem

    # Within a process connections are kept, also to a store of another scenario that is gone.
    S3FileSystem.clear_instance_cache()
    store = ObjectStore()
    before = dict(os.environ)
    os.environ.update(store.environment)
    try:
        client = boto3.client("s3")
        client.create_bucket(Bucket=BUCKET)
        yield store, location(f"s3://{BUCKET}/{results}")
        for found in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
            for entry in found.get("Contents", ()):
                client.delete_object(Bucket=BUCKET, Key=entry["Key"])
        client.delete_bucket(Bucket=BUCKET)
    finally:
        store.go_away()
        os.environ.clear()
        os.environ.update(before)


def killed_driver_and_object_store(stage: Stage) -> Seen:
    """SIGKILL to a driver whose results lie in an object store; then the same command."""
    with object_store("killed") as (_, results):
        mlflow = f"sqlite:///{stage.folder / 'killed.db'}"
        running = stage.run(study_text(), results, "--mlflow", mlflow)
        before = running.until(lambda: live_record(results, epochs=2), "two epochs")
        running.kill()
        running.end()
        again = stage.run(study_text(), results, "--mlflow", mlflow)
        code = again.end()
        after = ResultsFolder(results).record(before.key).exists()
        same = same_numbers(results, undisturbed(stage))
        left = ResultsFolder(results).live_keys()
        return Seen(
            f"results in s3://; SIGKILL to all processes after epoch {before.num_epochs} of a trial; then once more",
            (
                *told(again),
                f"started again: exit code {code}; {in_words(results)}; {same_in_words(same)}; live left: {left}",
            ),
            code == 0 and same and after and not left,
        )


def object_store_away(stage: Stage) -> Seen:
    """An object store that refuses connections for a while in mid-trial."""
    with object_store("away") as (store, results):
        running = stage.run(study_text(), results, "--mlflow", f"sqlite:///{stage.folder / 'away.db'}")
        before = running.until(lambda: live_record(results, epochs=2), "two epochs")
        store.go_away()
        running.until_told("cannot be written")
        store.come_back()
        code = running.end()
        same = same_numbers(results, undisturbed(stage))
        said = [line for line in running.err if line.strip()]
        return Seen(
            f"results in s3://, whose server stops after epoch {before.num_epochs} and is back once it was told of",
            (*told(running), f"exit code {code}; {in_words(results)}; {same_in_words(same)}"),
            code == 0 and same and len(said) == 2 and "can be written again" in said[1],
        )


def second_run(stage: Stage) -> Seen:
    """The same command a second time while the first works."""
    results = stage.folder / "second"
    text = study_text(epochs=60)
    running = stage.run(text, results)
    running.until(lambda: live_record(results), "an epoch")
    second = stage.run(text, results)
    refused = second.end()
    before = len(records(results))
    running.press()
    code = running.end()
    return Seen(
        "the same command again while the first works, on the same host",
        (*told(second), f"exit codes {refused} and, after Ctrl-C, {code}"),
        refused == 2 and code == 130 and before < 4 and "another run works in this folder" in "".join(second.err),
    )


def suspended_driver(stage: Stage) -> Seen:
    """A run on another host sleeps for longer than its lease, another takes its place, and the first wakes up.

    Raises:
        PermissionError: this user may not make a host of another name.
    """
    if os.geteuid() != 0:
        raise PermissionError("unshare needs root")
    results = stage.folder / "suspended"
    first = stage.run(study_text(), results, within=ELSEWHERE)
    before = first.until(lambda: live_record(results, epochs=2), "two epochs")
    asleep = _suspend(first.processes())
    time.sleep(EXPIRES_S)  # its last beat is old: who comes now waits once more as long, and hears none
    second = stage.run(study_text(), results)
    second.until(lambda: _attempt(results) == 2, "the second run's lease")
    second.until(lambda: live_record(results, epochs=before.num_epochs + 1), "an epoch of the second run")
    for each in asleep:
        each.send_signal(signal.SIGCONT)
    codes = first.end(), second.end()
    same = same_numbers(results, undisturbed(stage))
    left = ResultsFolder(results).live_keys()
    return Seen(
        f"a run on a host of another name is suspended, with all its processes, after epoch {before.num_epochs}; the "
        f"same command here, {EXPIRES_S:g} s later; the first wakes up while the second trains",
        (
            *told(first),
            *told(second),
            f"exit codes {codes[0]} and {codes[1]}; {in_words(results)}; {same_in_words(same)}; live left: {left}",
        ),
        codes == (2, 0) and same and not left and "another run took this folder" in "".join(first.err),
    )


LEASE_SCENARIOS: tuple[Callable[[Stage], Seen], ...] = (
    killed_driver_and_object_store,
    object_store_away,
    second_run,
    suspended_driver,
)


def _suspend(processes: list[psutil.Process]) -> list[psutil.Process]:
    for each in processes:
        each.suspend()
    return processes


def _attempt(results: Path) -> int:
    holder = last_holder(ResultsFolder(results))
    return 0 if holder is None else holder.attempt
