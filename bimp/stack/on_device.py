"""The epochs of runs that are trained together on an accelerator: :class:`bimp.device.run.DeviceRun` for several seeds.

All seeds' batches of a step are gathered at once, padded to one size, and taken by one captured step of the stacked
network. Where no size holds them (numbers of graphs that differ, a batch beyond all sizes), each seed takes its own by
itself: with the same parameters, in its own network, which lies in the same memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from bimp.data import GraphSplit
from bimp.descent import AdamUpdate, descend, gradients
from bimp.device.capture import Capture, State, capture_on
from bimp.device.learning import Learning
from bimp.device.passage import Passage, Signs
from bimp.device.placing import place
from bimp.device.resident import GatheredRows
from bimp.device.run import evaluation_in_training
from bimp.device.shapes import Shape
from bimp.engine import TrainingRun
from bimp.losses import supervised_loss
from bimp.measurement import DivergedError, Evaluation, Meter
from bimp.metrics import GateSpread
from bimp.network import NetworkOutput
from bimp.precision import output_of
from bimp.stack.batch import StackedBatch
from bimp.stack.network import StackedNetwork
from bimp.stack.vector import keep


class DeviceTeam:
    """Training and validation of several runs.

    Args:
        members: the runs; the optimizer of each moves its row of ``matrix`` alone.
        network: theirs as one.
        grad: ``[seeds, numbers]``, where the gradients of a step go.
        places: the parameters in ``grad``, ``[seeds, ...]`` each.
        train, validation: each member's splits.
        device: where all of it happens.
        capturing: how steps are captured there; None: as :func:`~bimp.device.capture.capture_on` does.
    """

    def __init__(
        self,
        members: Sequence[TrainingRun],
        network: StackedNetwork,
        grad: Tensor,
        places: Sequence[Tensor],
        train: Sequence[GraphSplit],
        validation: Sequence[GraphSplit],
        device: torch.device,
        capturing: Callable[[torch.device, State], Capture] | None = None,
    ) -> None:
        self._members = members
        self._network = network
        self._grad = grad
        self._places = places
        self._config = members[0].config
        self._parameters = list(network.parameters())
        self._updates = [AdamUpdate(member.optimizer, device) for member in members]
        learning = [
            Learning(member.network, member.config, member.loss, partial(self._descend_of, seed))
            for seed, member in enumerate(members)
        ]
        training = place("training", train, device)
        validating = place("validation", validation, device, training)
        capture = (capturing or capture_on)(device, self._state)
        passage = partial(Passage, config=self._config, device=device, dtype=grad.dtype, capture=capture)
        of_residents = [placed.resident.most_nodes for placed in (training, validating) if placed.resident is not None]
        self._most_nodes = max(of_residents, default=0)
        self._training = passage(
            training, learners=[each.learn for each in learning], joint=self._learn, is_training=True
        )
        self._validation = passage(
            validating, learners=[each.look for each in learning], joint=self._look, is_training=False
        )

    def train(self, orders: Sequence[Tensor], signs: Sequence[Signs]) -> list[Evaluation | DivergedError]:
        """One epoch of every member over its training split: what was measured, or how it diverged.

        Args:
            orders: a permutation of each split's graphs.
            signs: draws those of each member's positional encodings.
        """
        self._set_training(True)
        for update in self._updates:
            update.follow_schedule()
        return [
            _or_how_it_diverged(partial(evaluation_in_training, meter, rows, self._config))
            for meter, rows in self._training.go(orders, signs)
        ]

    def evaluate(self) -> list[Evaluation | DivergedError]:
        """Every member on its validation split, in evaluation mode."""
        self._set_training(False)
        with torch.no_grad():
            measured = self._validation.go(None, None)
        return [_or_how_it_diverged(meter.finite_evaluation) for meter, _ in measured]

    def _set_training(self, is_training: bool) -> None:
        for network in (self._network, *(member.network for member in self._members)):
            network.train(is_training)

    def _state(self) -> list[Tensor]:
        moved = [tensor for update in self._updates for tensor in update.state]
        boards = [*self._training.state, *self._validation.state]
        return [*moved, *self._network.buffers(), *boards]

    def _learn(self, rows: GatheredRows, size: Shape) -> Tensor:
        batch, output, supervised = self._seen(rows, size)
        losses = supervised
        if output.unsupervised_loss is not None:
            losses = supervised + (self._config.train.unsupervised_weight or 0.0) * output.unsupervised_loss
        keep(gradients(losses.sum(), self._parameters), self._places)
        for update, grad in zip(self._updates, self._grad, strict=True):
            descend(update, self._config.train.clip_norm, [grad])
        return self._rows(batch, output, supervised, with_gate=False)

    def _look(self, rows: GatheredRows, size: Shape) -> Tensor:
        return self._rows(*self._seen(rows, size), with_gate=True)

    def _seen(self, rows: GatheredRows, size: Shape) -> tuple[StackedBatch, NetworkOutput, Tensor]:
        """The batches as one, what the network says of them, and each seed's supervised loss, ``[seeds]``."""
        batch = StackedBatch.of_gathered(rows, size, self._most_nodes)
        output = output_of(self._network, batch, self._config.train.precision)
        loss = torch.vmap(partial(supervised_loss, self._network.task.kind))
        return batch, output, loss(self._network.scores_by_seed(output, batch), batch.y.view(len(rows.ptr), -1))

    def _rows(self, batch: StackedBatch, output: NetworkOutput, supervised: Tensor, *, with_gate: bool) -> Tensor:
        """Each seed's row of numbers, ``[seeds, columns]``, as :meth:`bimp.measurement.Meter.row` has them."""
        seeds = batch.nodes.seeds
        losses = [supervised, *([] if output.unsupervised_loss is None else [output.unsupervised_loss])]
        scores = self._network.scores_by_seed(output, batch).detach()
        sums = torch.vmap(Meter(self._config).metric.sums)(scores, batch.y.view(seeds, -1))
        parts = [torch.stack(losses, dim=1).detach().double(), sums.flatten(1)]
        if with_gate and output.gates:
            extremes, totals = zip(*(_spread(gate.beta_hat, batch) for gate in output.gates), strict=True)
            parts += [torch.stack(extremes).amax(0), torch.stack(totals).sum(0)]
        return torch.cat(parts, dim=1)

    def _descend_of(self, seed: int, grads: Sequence[Tensor | None]) -> None:
        """Move one seed by the gradients of its own network."""
        keep(grads, [place[seed] for place in self._places])
        descend(self._updates[seed], self._config.train.clip_norm, [self._grad[seed]])


def _spread(beta_hat: Tensor, batch: StackedBatch) -> tuple[Tensor, Tensor]:
    """What :meth:`bimp.metrics.GateSpread.add` takes of a gated layer, ``[seeds, 2]`` and ``[seeds, 3]``."""
    edges, degree = batch.edges, batch.adjacency.in_degree.double()
    excess = degree.index_select(0, batch.adjacency.destination) * beta_hat.double() - 1
    return GateSpread.of_excess(excess.view(edges.seeds, edges.length), edges.real, edges.counted)


def _or_how_it_diverged(evaluation: Callable[[], Evaluation]) -> Evaluation | DivergedError:
    try:
        return evaluation()
    except DivergedError as error:
        return error
