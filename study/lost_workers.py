"""Ray's errors that tell of a lost worker, whatever their kind, in the one form that Tune takes as such."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ray.air.execution._internal import RayActorManager
from ray.exceptions import RayActorError, RayError, RayTaskError
from ray.tune.execution import tune_controller


class WorkerLostError(RayActorError):
    """A worker that is gone; the message begins with the kind of Ray's error."""


class ActorManager(RayActorManager):
    """Tune's own, which knows dead actors and failed tasks, and ends the whole experiment over any other error.

    Of another kind is the error of a worker that Ray's memory monitor killed, or whose node took a result with it.
    """

    def _actor_task_failed(self, tracked_actor_task: Any, exception: Exception) -> None:
        if isinstance(exception, RayError) and not isinstance(exception, RayActorError | RayTaskError):
            exception = WorkerLostError(error_msg=f"{type(exception).__name__}: {exception}")
        super()._actor_task_failed(tracked_actor_task=tracked_actor_task, exception=exception)


@contextmanager
def forgiving_tune() -> Iterator[None]:
    """Let Tune use :class:`ActorManager` in this block: it takes the class from its module, and no argument for it."""
    module: Any = tune_controller
    own = module.RayActorManager
    module.RayActorManager = ActorManager
    try:
        yield
    finally:
        module.RayActorManager = own
