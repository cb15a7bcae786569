"""What the host tells the device once an epoch, and what it hears from it once an epoch."""

from __future__ import annotations

import torch
from torch import Tensor


class Board:
    """Tensors that keep their place on the device, which the steps of an epoch read and write.

    Args:
        graphs: in the split.
        batch_size: graphs in a step but the last.
        columns: numbers that a step leaves.
        encodings: number of positional encodings, whose signs a step flips; None: it flips none.
        device: where.
    """

    def __init__(self, graphs: int, batch_size: int, columns: int, encodings: int | None, device: torch.device) -> None:
        steps = -(-graphs // batch_size)
        self.batch_size = batch_size
        self.order = torch.zeros(graphs, dtype=torch.int64, device=device)
        self.step = torch.zeros((), dtype=torch.int64, device=device)
        self.rows = torch.zeros(steps, columns, dtype=torch.float64, device=device)
        self.signs = None if encodings is None else torch.ones(steps, encodings, device=device)

    @property
    def state(self) -> list[Tensor]:
        """What a step changes."""
        return [self.step, self.rows]

    def begin(self, chosen: Tensor, signs: Tensor | None) -> None:
        """Begin an epoch: ``chosen``, ``[graphs]``, are the graphs in its order, ``signs`` those of each step."""
        self.order.copy_(_on_its_way(chosen, self.order.device), non_blocking=True)
        self.step.zero_()
        if self.signs is not None and signs is not None:
            self.signs.copy_(_on_its_way(signs, self.order.device), non_blocking=True)

    def picks(self, graphs: int) -> Tensor:
        """The graphs of this step, of which there are so many."""
        places = torch.arange(graphs, device=self.order.device) + self.step * self.batch_size
        return self.order.index_select(0, places)

    def sign_row(self) -> Tensor | None:
        """Signs of the positional encodings in this step, ``[1, encodings]``."""
        return None if self.signs is None else self.signs.index_select(0, self.step.view(1))

    def write(self, row: Tensor) -> None:
        """Leave this step's numbers, and go on to the next step."""
        self.rows.index_copy_(0, self.step.view(1), row.unsqueeze(0))
        self.step.add_(1)

    def read(self) -> Tensor:
        """What the steps of the epoch left, ``[steps, columns]`` in main memory: here the host waits."""
        return self.rows.cpu()


def _on_its_way(tensor: Tensor, device: torch.device) -> Tensor:
    """Pinned where the device can then copy it while the host goes on."""
    return tensor.pin_memory() if device.type == "cuda" else tensor
