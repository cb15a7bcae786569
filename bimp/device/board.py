"""What the host tells the device once an epoch, and what it hears from it once an epoch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class Board:
    """Tensors that keep their place on the device, which the steps of an epoch read and write.

    Several runs may pass side by side, step by step, each by an order of its own.

    Args:
        graphs: in each run's split.
        batch_size: graphs in a step but the last.
        columns: numbers that a step leaves of each run.
        encodings: number of positional encodings, whose signs a step flips; None: it flips none.
        device: where.
    """

    def __init__(
        self, graphs: Sequence[int], batch_size: int, columns: int, encodings: int | None, device: torch.device
    ) -> None:
        runs, steps = len(graphs), -(-max(graphs) // batch_size)
        self.batch_size = batch_size
        self.order = torch.zeros(runs, max(graphs), dtype=torch.int64, device=device)
        self.step = torch.zeros((), dtype=torch.int64, device=device)
        self.rows = torch.zeros(steps, runs, columns, dtype=torch.float64, device=device)
        self.signs = None if encodings is None else torch.ones(steps, runs, encodings, device=device)

    @property
    def state(self) -> list[Tensor]:
        """What a step changes."""
        return [self.step, self.rows]

    def begin(self, chosen: Sequence[Tensor], signs: Tensor | None) -> None:
        """Begin an epoch.

        Args:
            chosen: of each run the graphs in its order, ``[graphs]``.
            signs: of each step and run, ``[steps, runs, encodings]``.
        """
        for order, of_run in zip(self.order, chosen, strict=True):
            order[: len(of_run)].copy_(on_its_way(of_run, order.device), non_blocking=True)
        self.step.zero_()
        if self.signs is not None and signs is not None:
            self.signs.copy_(on_its_way(signs, self.order.device), non_blocking=True)

    def picks_of(self, run: int, graphs: int) -> Tensor:
        """The graphs of one run in this step, ``[graphs]``."""
        places = torch.arange(graphs, device=self.order.device) + self.step * self.batch_size
        return self.order[run].index_select(0, places)

    def sign_rows(self) -> Tensor | None:
        """Signs of the positional encodings in this step, ``[runs, encodings]``."""
        return None if self.signs is None else self.signs.index_select(0, self.step.view(1)).squeeze(0)

    def write(self, rows: Tensor) -> None:
        """Leave this step's numbers of all runs, ``[runs, columns]``, and go on to the next step."""
        self.rows.index_copy_(0, self.step.view(1), rows.unsqueeze(0))
        self.advance()

    def write_of(self, run: int, row: Tensor) -> None:
        """Leave this step's numbers of one run, ``[columns]``."""
        self.rows[:, run].index_copy_(0, self.step.view(1), row.unsqueeze(0))

    def advance(self) -> None:
        """Go on to the next step."""
        self.step.add_(1)

    def read(self) -> Tensor:
        """What the steps of the epoch left, ``[steps, runs, columns]`` in main memory: here the host waits."""
        return self.rows.cpu()


def on_its_way(tensor: Tensor, device: torch.device) -> Tensor:
    """Pinned where the device can then copy it while the host goes on."""
    return tensor.pin_memory() if device.type == "cuda" else tensor
