"""A step that is made once and replayed: a CUDA graph, which costs the host one call instead of thousands."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

logger = logging.getLogger(__name__)

WARM_UP = 3
"""Runs before a capture, in which libraries choose and load what they need."""

Step = Callable[[], None]
"""Reads and writes tensors that outlive it, and neither gives nor keeps any other."""

State = Callable[[], Sequence[Tensor]]
"""The tensors that a step changes. A step may add some at its first run; they begin as zeros."""

Capture = Callable[[Step], Step]
"""Makes of a step one that does the same, at the same size and place; the state is left as it was."""


def capture_on(device: torch.device, state: State) -> Capture:
    """How steps on ``device`` are captured; elsewhere than on a GPU they are left as they are."""
    return CudaGraphs(device, state) if device.type == "cuda" else lambda step: step


class CudaGraphs:
    """Captures of one run. They share their memory: a step leaves nothing there that another would need.

    A step that cannot be captured is given back as it is, and so are all after it.

    Args:
        device: where the steps run.
        state: what they change.
    """

    def __init__(self, device: torch.device, state: State) -> None:
        self._state = state
        self._pool = torch.cuda.graph_pool_handle()
        # One for warming up and capturing, so that what libraries keep for a stream is there when it is captured.
        self._side: torch.cuda.Stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._has_failed = False

    def __call__(self, step: Step) -> Step:
        """Capture ``step``."""
        if self._has_failed:
            return step
        stream = torch.cuda.current_stream(self._side.device)
        self._side.wait_stream(stream)
        with torch.cuda.stream(self._side):
            for _ in range(WARM_UP):
                with unchanged(self._state):
                    step()
        stream.wait_stream(self._side)
        graph = torch.cuda.CUDAGraph()
        try:
            # What other threads ask of CUDA meanwhile, for a measurement or a copy of their own, spoils no capture.
            with torch.cuda.graph(graph, pool=self._pool, stream=self._side, capture_error_mode="thread_local"):
                step()
        except torch.OutOfMemoryError:
            raise  # the trial's own trouble: it would not fit uncaptured either
        except RuntimeError as error:
            torch.cuda.set_stream(stream)  # ending a capture that failed leaves the side stream the current one
            self._has_failed = True
            logger.warning("steps are not captured, and slower for it: %s", str(error).splitlines()[0])
            return step
        replay: Step = graph.replay
        return replay


@contextmanager
def unchanged(state: State) -> Iterator[None]:
    """Whatever happens within, the tensors of ``state`` are afterwards as they were; new ones are zeros."""
    with torch.no_grad():  # no graph of autograd's may be there when one is captured
        before = [(tensor, tensor.clone()) for tensor in state()]
    yield
    known = {id(tensor) for tensor, _ in before}
    with torch.no_grad():
        for tensor, value in before:
            tensor.copy_(value)
        for tensor in state():
            if id(tensor) not in known:
                tensor.zero_()
