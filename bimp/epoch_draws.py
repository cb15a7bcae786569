"""What an epoch of training draws at random, from its seed and number alone.

No random generator lives from one epoch to the next, so that a run that goes on from a checkpoint draws what an
undisturbed one does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from bimp.config import BACKBONES, Backbone
from bimp.data.positional import draw_signs

SIGNS_SEED = 2**48
"""Keeps the signs of an epoch's positional encodings independent of its order."""
LAYERS_SEED = 2**49
"""Keeps what the layers of an epoch draw independent of both."""


@dataclass(frozen=True)
class EpochDraws:
    """The draws of the epoch ``epoch`` of a run with the seed ``seed``."""

    seed: int
    epoch: int

    def order(self, graphs: int) -> Tensor:
        """In which the ``graphs`` of the training split are taken, ``[graphs]`` int64."""
        return torch.randperm(graphs, generator=self._generator(0))

    def signs(self) -> Callable[[int], Tensor]:
        """Draws as many signs, for the positional encodings of one batch after the other, whenever it is called."""
        return partial(draw_signs, generator=self.sign_generator())

    def sign_generator(self) -> torch.Generator:
        """Of which :meth:`signs` are drawn, at its beginning."""
        return self._generator(SIGNS_SEED)

    @contextmanager
    def seeded_layers(self, backbone: Backbone | str, device: torch.device) -> Iterator[None]:
        """Within it, layers draw of PyTorch's generators what follows from here; afterwards these are as they were."""
        if backbone in BACKBONES:  # which draw nothing
            yield
            return
        with torch.random.fork_rng(devices=[] if device.type == "cpu" else [device]):
            torch.manual_seed(self._seed(LAYERS_SEED))
            yield

    def _generator(self, purpose: int) -> torch.Generator:
        return torch.Generator().manual_seed(self._seed(purpose))

    def _seed(self, purpose: int) -> int:
        return self.seed * 1_000_003 + self.epoch + purpose
