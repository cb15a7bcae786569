"""How splits pass through networks on an accelerator, step by step, for one run or for several side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from bimp.config import TrialConfig
from bimp.data import GraphBatch
from bimp.device.ahead import BatchesAhead
from bimp.device.board import Board
from bimp.device.capture import Capture, Step
from bimp.device.placing import Placed
from bimp.device.planning import Padded, PlannedStep, Planner
from bimp.device.resident import GatheredRows, ResidentGraphs
from bimp.device.shapes import Shape
from bimp.measurement import Meter

Learner = Callable[[GraphBatch], Tensor]
"""What is done with a batch; gives the row of numbers that it leaves (:meth:`bimp.measurement.Meter.row`)."""

JointLearner = Callable[[GatheredRows, Shape], Tensor]
"""What is done with batches of all runs, padded to one size; gives a row of each, ``[runs, columns]``."""

Signs = Callable[[int], Tensor]
"""Draws as many signs, for the positional encodings of a step, whenever it is called."""


class Passage:
    """How a split of each run passes through the run's network, epoch by epoch.

    A step takes a batch of each run. Where they are padded to one size, ``joint`` takes all of them at once; where
    none holds them (the runs' numbers of graphs differ, or one has none left) each run takes its own by itself.

    Args:
        placed: the splits.
        config: of the trials, which differ in seed and fold alone.
        device: where the networks lie.
        dtype: of their parameters.
        learners: what is done with a batch of each run.
        joint: what is done with batches of all runs at once; None: there is one run.
        capture: how a step of padded batches is captured; None: batches are neither padded nor captured.
        is_training: batches come in a new order each time, and signs of positional encodings are flipped.
    """

    def __init__(
        self,
        placed: Placed,
        config: TrialConfig,
        device: torch.device,
        dtype: torch.dtype,
        learners: Sequence[Learner],
        capture: Capture | None,
        *,
        is_training: bool,
        joint: JointLearner | None = None,
    ) -> None:
        self._splits = placed.splits
        self._resident = placed.resident
        self._config = config
        self._device = device
        self._dtype = dtype
        self._learners = learners
        self._joint = joint
        self._capture = capture
        self._steps: dict[Padded, Step] = {}
        self._ahead: dict[Padded, BatchesAhead] = {}
        self._planner = Planner(
            self._splits,
            config.train.batch_size,
            is_training=is_training,
            is_padded=capture is not None and self._resident is not None,
            is_joint=joint is not None,
        )
        pos_enc = self._splits[0].graphs.pos_enc
        flips = is_training and config.model.pos_enc_dim is not None and pos_enc is not None
        self.board = Board(
            [len(split) for split in self._splits],
            config.train.batch_size,
            Meter(config).columns(with_gate=not is_training),
            pos_enc.shape[1] if flips and pos_enc is not None else None,
            device,
        )

    def go(self, orders: Sequence[Tensor] | None, signs: Sequence[Signs] | None) -> list[tuple[Meter, Tensor]]:
        """Pass once, and wait for the end.

        Args:
            orders: of each run's graphs, ``[graphs]``; None: each split's own.
            signs: draws those of each run; None: nothing is flipped.

        Returns:
            Of each run, what was measured, and each step's row of it.
        """
        # All that the host has to find out is found before the first step.
        chosen = self._planner.chosen(orders)
        steps = self._planner.steps(chosen)
        self._look_ahead(steps)
        shapes = [[shape for step in steps if (shape := step.shapes[run])] for run in range(len(chosen))]
        self.board.begin(chosen, self._draw(signs, [len(of_run) for of_run in shapes]))
        for step in steps:
            self._take(step)
        rows = self.board.read()
        return [self._measured(rows[: len(of_run), run], of_run) for run, of_run in enumerate(shapes)]

    @property
    def state(self) -> list[Tensor]:
        """What a step changes."""
        return [*self.board.state, *(tensor for ahead in self._ahead.values() for tensor in ahead.state)]

    def _look_ahead(self, steps: Sequence[PlannedStep]) -> None:
        """Tell which batches come, of each size."""
        coming: dict[Padded, list[Tensor]] = defaultdict(list)
        for step in steps:
            for padded, picks in step.padded:
                coming[padded].append(picks)
        for padded, of_steps in coming.items():
            if padded not in self._ahead:
                assert self._resident is not None
                is_joint = padded.run is None
                runs = len(self._splits) if is_joint else 1
                model = self._config.model
                self._ahead[padded] = BatchesAhead(
                    self._resident,
                    padded.size,
                    runs,
                    self._dtype,
                    # Layers of stacked networks read the edges otherwise.
                    has_gated_runs=model.backbone == "gated_gcn" and not is_joint,
                    has_weights=model.backbone == "gcn" or bool(model.gated_layers),
                )
            self._ahead[padded].begin(of_steps)

    def _draw(self, signs: Sequence[Signs] | None, steps: Sequence[int]) -> Tensor | None:
        if signs is None or self.board.signs is None:
            return None
        drawn = torch.ones(self.board.signs.shape)
        read = drawn[..., : self._config.model.pos_enc_dim]  # those of the others stay
        for run, (draw, of_run) in enumerate(zip(signs, steps, strict=True)):
            for step in range(of_run):
                read[step, run] = draw(read.shape[2])
        return drawn

    def _measured(self, rows: Tensor, shapes: Sequence[Shape]) -> tuple[Meter, Tensor]:
        meter = Meter(self._config)
        for row, shape in zip(rows, shapes, strict=True):
            meter.add(row, shape.graphs)
        return meter, rows

    def _take(self, step: PlannedStep) -> None:
        """One step of every run."""
        if step.joint is not None:
            self._captured(step.joint, self._on_joint_batches)()
            return
        for run, (shape, picks, padded) in enumerate(zip(step.shapes, step.picks, step.own, strict=True)):
            if shape is not None and picks is not None:
                self._alone(run, shape, picks, padded)()
        if len(step.shapes) > 1:
            self.board.advance()

    def _alone(self, run: int, shape: Shape, picks: Tensor, padded: Padded | None) -> Step:
        if self._resident is None:
            return partial(self._on_sent_batch, run, picks)
        if padded is None:
            return partial(self._on_gathered_batch, run, self._resident, shape)
        return self._captured(padded, partial(self._on_padded_batch, run))

    def _captured(self, padded: Padded, on_batches: Callable[[BatchesAhead], None]) -> Step:
        """The step on the next batches of a size, which are gathered if they are not yet."""
        assert self._capture is not None
        ahead = self._ahead[padded]
        ahead.advance()
        if padded not in self._steps:
            self._steps[padded] = self._capture(partial(on_batches, ahead))
        return self._steps[padded]

    def _on_joint_batches(self, ahead: BatchesAhead) -> None:
        assert self._joint is not None
        rows = ahead.take()
        signs = self.board.sign_rows()
        if signs is not None and rows.pos_enc is not None:
            by_run = rows.pos_enc.view(len(signs), -1, signs.shape[1])
            rows = replace(rows, pos_enc=(by_run * signs.unsqueeze(1)).flatten(0, 1))
        self.board.write(self._joint(rows, ahead.size))

    def _on_padded_batch(self, run: int, ahead: BatchesAhead) -> None:
        self._on_batch(run, ahead.take().as_batch(ahead.resident.most_nodes))

    def _on_gathered_batch(self, run: int, resident: ResidentGraphs, shape: Shape) -> None:
        self._on_batch(run, resident.gather(self.board.picks_of(run, shape.graphs), shape, padded=False))

    def _on_sent_batch(self, run: int, picks: Tensor) -> None:
        self._on_batch(run, self._splits[run].graphs.gather(picks).to(self._device))

    def _on_batch(self, run: int, batch: GraphBatch) -> None:
        signs = self.board.sign_rows()
        if signs is not None and batch.pos_enc is not None:
            batch = replace(batch, pos_enc=batch.pos_enc * signs[run])
        row = self._learners[run](batch)
        if len(self._learners) == 1:
            self.board.write(row.unsqueeze(0))
        else:
            self.board.write_of(run, row)
