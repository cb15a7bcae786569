"""Runs of one configuration as one network, an epoch at a time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor, nn

from bimp.config import TrialConfig
from bimp.data import GraphBatch, GraphSplit
from bimp.descent import AdamUpdate, descend, gradients
from bimp.device.capture import Capture, State
from bimp.engine import EpochResult, TrainingRun, has_own_path
from bimp.evaluation import batches_read_by
from bimp.losses import supervised_loss
from bimp.measurement import DivergedError, Evaluation, Meter
from bimp.network import NetworkOutput
from bimp.precision import output_of
from bimp.stack.batch import StackedBatch, without_graphs
from bimp.stack.network import stack
from bimp.stack.on_device import DeviceTeam
from bimp.stack.vector import ParameterLayout, keep


@dataclass(frozen=True, kw_only=True)
class SeedRun:
    """One of the runs that are trained together; as the arguments of :func:`bimp.engine.fit`."""

    config: TrialConfig
    train: GraphSplit
    validation: GraphSplit
    checkpoint: dict[str, Any] | None = None


class Member(TrainingRun):
    """A run whose parameters are a row of the team's matrix."""

    def join(self, row: Tensor, layout: ParameterLayout) -> None:
        """From now on Adam moves the whole row; its state and the schedule go on."""
        self.layout = layout
        self.row = nn.Parameter(row)
        optimizer = torch.optim.Adam([self.row], lr=self.learning_rate, fused=True)
        optimizer.load_state_dict(layout.state_joined(self.optimizer.state_dict()))
        self.optimizer = self.scheduler.optimizer = optimizer
        self.update = AdamUpdate(optimizer)

    def step(self, grad: Tensor) -> None:
        """One step by the gradient of the row."""
        descend(self.update, self.config.train.clip_norm, [grad])

    def save(self) -> dict[str, Any]:
        """The checkpoint of :func:`bimp.engine.fit`, in memory of its own."""
        saved = super().save()
        return {
            **saved,
            "network": {name: value.clone() for name, value in saved["network"].items()},
            "optimizer": self.layout.state_apart(saved["optimizer"]),
        }


class Team:
    """Runs that have not ended, and the network that they share."""

    def __init__(self, runs: Sequence[SeedRun], device: torch.device) -> None:
        self.runs = runs
        self.members = [Member(run.config, device) for run in runs]
        for member, run in zip(self.members, runs, strict=True):
            if run.checkpoint is not None:
                member.restore(run.checkpoint)
        self.network, matrix = stack([member.network for member in self.members])
        self.layout = ParameterLayout.of(self.members[0].network)
        self.grad = torch.zeros_like(matrix)
        self.places = self.layout.apart(self.grad)
        for member, row in zip(self.members, matrix, strict=True):
            member.join(row, self.layout)
        self.on_device = self.steps_on(device) if has_own_path(device) else None

    @property
    def is_complete(self) -> bool:
        """Whether no member has ended."""
        return all(member.status == "running" for member in self.members)

    def steps_on(
        self, device: torch.device, capturing: Callable[[torch.device, State], Capture] | None = None
    ) -> DeviceTeam:
        """What takes the place of the plain loops on an accelerator."""
        splits = [run.train for run in self.runs], [run.validation for run in self.runs]
        return DeviceTeam(self.members, self.network, self.grad, self.places, *splits, device, capturing)

    def one_epoch(self) -> list[EpochResult]:
        """Train every member for an epoch and validate it."""
        started = time.perf_counter()
        for member in self.members:
            member.epoch += 1
        if self.on_device is None:
            trained, validated = self._train(), self._validate()
        else:
            orders = [member.draws.order(len(run.train)) for member, run in zip(self.members, self.runs, strict=True)]
            trained = self.on_device.train(orders, [member.draws.signs() for member in self.members])
            validated = self.on_device.evaluate()
        seconds = (time.perf_counter() - started) / len(self.members)
        return [
            member.end_epoch(*_told(of_training, of_validation), seconds)
            for member, of_training, of_validation in zip(self.members, trained, validated, strict=True)
        ]

    def _train(self) -> list[Evaluation | DivergedError]:
        self.network.train()
        meters = [Meter(member.config) for member in self.members]
        diverged: dict[int, DivergedError] = {}
        batches = [member.batches(run.train) for member, run in zip(self.members, self.runs, strict=True)]
        for of_step in zip_longest(*batches):
            taking_part = [n for n, batch in enumerate(of_step) if batch is not None and n not in diverged]
            if not taking_part:
                continue
            stacked = _join(of_step)
            outputs = self._outputs(stacked)
            losses, supervised = {}, {}
            for number in taking_part:
                y = stacked.apart[number].y
                losses[number], supervised[number] = self.members[number].loss(outputs[number], y)
            found = torch.stack(list(losses.values())).detach().tolist()
            for number, loss in zip(taking_part, found, strict=True):
                if not math.isfinite(loss):
                    diverged[number] = DivergedError(f"loss {loss} in training")
            self._step(losses, [number for number in taking_part if number not in diverged])
            for number in taking_part:
                meters[number].update(stacked.apart[number], outputs[number], supervised[number])
        return [diverged.get(number) or meter.evaluation() for number, meter in enumerate(meters)]

    def _outputs(self, stacked: StackedBatch) -> tuple[NetworkOutput, ...]:
        """What each seed's network says of its part."""
        output = output_of(self.network, stacked, self.members[0].config.train.precision)
        return self.network.outputs_apart(output, stacked)

    def _step(self, losses: dict[int, Tensor], stepping: Sequence[int]) -> None:
        if not stepping:
            return
        loss = torch.stack([losses[number] for number in stepping]).sum()
        keep(gradients(loss, list(self.network.parameters())), self.places)
        for number in stepping:
            self.members[number].step(self.grad[number])

    def _validate(self) -> list[Evaluation | DivergedError]:
        self.network.eval()
        meters = [Meter(member.config) for member in self.members]
        kind = self.network.task.kind
        with torch.no_grad():
            for of_step in zip_longest(*(batches_read_by(run.config, run.validation) for run in self.runs)):
                stacked = _join(of_step)
                outputs = self._outputs(stacked)
                for meter, given, batch, output in zip(meters, of_step, stacked.apart, outputs, strict=True):
                    if given is not None:
                        loss = supervised_loss(kind, output.scores, batch.y)
                        meter.update(batch, output, loss, with_gate=True)
        return [_finite(meter) for meter in meters]


def _finite(meter: Meter) -> Evaluation | DivergedError:
    try:
        return meter.finite_evaluation()
    except DivergedError as error:
        return error


def _join(of_step: Sequence[GraphBatch | None]) -> StackedBatch:
    """The step's batches as one; who has none left sits it out."""
    given = next(batch for batch in of_step if batch is not None)
    return StackedBatch.join([without_graphs(given) if batch is None else batch for batch in of_step])


def _told(
    trained: Evaluation | DivergedError, validated: Evaluation | DivergedError
) -> tuple[Evaluation | None, Evaluation | None, DivergedError | None]:
    """What :func:`bimp.engine.fit` would tell: nobody is validated who diverged in training."""
    if isinstance(trained, DivergedError):
        return None, None, trained
    if isinstance(validated, DivergedError):
        return trained, None, validated
    return trained, validated, None
