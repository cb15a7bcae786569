"""Ray's errors in the hands of Tune's actor manager."""

from __future__ import annotations

from typing import Any

import pytest
from ray.air.execution import FixedResourceManager, ResourceRequest
from ray.air.execution._internal import TrackedActor
from ray.air.execution._internal.tracked_actor_task import TrackedActorTask
from ray.exceptions import ActorDiedError, ObjectLostError, OutOfMemoryError, RayActorError, RayTaskError
from ray.tune.execution import tune_controller

from study.lost_workers import ActorManager, WorkerLostError, forgiving_tune


def heard(error: Exception) -> list[Exception]:
    """What the manager tells of an actor's task that failed with ``error``."""
    manager = ActorManager(resource_manager=FixedResourceManager({"CPU": 1}))
    told: list[Exception] = []
    actor: TrackedActor = manager.add_actor(_Nobody, {}, ResourceRequest([{"CPU": 1}]))
    task = TrackedActorTask(actor, on_error=lambda _, exception: told.append(exception))
    manager._actor_task_failed(task, error)
    return told


class _Nobody:
    """Never started: no Ray runs here."""


@pytest.mark.parametrize(
    "error",
    [
        OutOfMemoryError("1 worker(s) were killed due to the node running low on memory."),
        ObjectLostError("a", "b", "c"),
    ],
)
def test_a_worker_lost_in_a_way_that_tune_does_not_know_is_a_lost_worker(
    error: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ActorManager, "_cleanup_actor", lambda self, tracked_actor: None)
    (told,) = heard(error)
    assert isinstance(told, WorkerLostError)
    assert isinstance(told, RayActorError)
    assert not told.preempted
    assert str(told) == f"{type(error).__name__}: {error}"


def test_what_tune_knows_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ActorManager, "_cleanup_actor", lambda self, tracked_actor: None)
    died = ActorDiedError()
    failed = RayTaskError("f", "traceback", ValueError("x"))
    assert heard(died) == [died]
    assert heard(failed) == [failed]
    with pytest.raises(RuntimeError, match="unexpected"):
        heard(ValueError("a fault of the code"))


def test_tune_uses_it_in_the_block_alone() -> None:
    own = tune_controller.RayActorManager
    with forgiving_tune():
        assert tune_controller.RayActorManager is ActorManager
    assert tune_controller.RayActorManager is own
