"""What a checkpoint of the released code is worth: its network on the splits of a prepared dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bimp.budget import count_parameters
from bimp.config import TrialConfig
from bimp.data import open_prepared
from bimp.data.source import SPLIT_NAMES, SplitName
from bimp.evaluation import evaluate
from bimp.measurement import Evaluation
from bimp.released import ReleasedError, load_config, load_network, read_checkpoint
from bimp.released.weights import clusters_of
from bimp.tasks import TaskSpec, task_of


@dataclass(frozen=True, kw_only=True)
class CheckpointReport:
    """A checkpoint's network and its evaluation on each split.

    Attributes:
        config: what it was trained by; its model is the one that was loaded.
        params: trainable numbers.
        splits: losses, metric and gate by split.
    """

    config: TrialConfig
    params: int
    splits: Mapping[SplitName, Evaluation]

    @property
    def task(self) -> TaskSpec:
        """What is predicted."""
        return task_of(self.config.dataset)


def evaluate_checkpoint(checkpoint: Path, config: Path, data: Path, *, fold: int | None = None) -> CheckpointReport:
    """Evaluate the released ``checkpoint`` with its JSON ``config`` on the prepared dataset in ``data``, on the CPU.

    Args:
        checkpoint: a state dict with released names.
        config: the released code's configuration.
        data: folder of the prepared datasets.
        fold: of a dataset with folds, counted from 0; None there: 0.

    Raises:
        ReleasedError: one of the two files is not what it should be, or they do not belong together.
        DataError: the dataset is not prepared, or has no such fold, or lacks positional encodings.
    """
    weights = read_checkpoint(checkpoint)
    trial = load_config(config, num_clusters=clusters_of(weights))
    dataset = open_prepared(trial.dataset, data, positional_encodings=trial.model.pos_enc_dim or 0)
    fold = 0 if fold is None and dataset.folds is not None else fold
    try:
        network = load_network(weights, trial)
    except ReleasedError as error:
        raise ReleasedError(f"{checkpoint} with {config}: {error}") from error
    trial = replace(trial, model=network.model, fold=fold)
    # Prepared inputs are of single precision.
    network = network.float()
    return CheckpointReport(
        config=trial,
        params=count_parameters(network),
        splits={name: evaluate(network, trial, dataset.split(name, fold), "cpu") for name in SPLIT_NAMES},
    )


def render_report(report: CheckpointReport) -> RenderableType:
    """A line about the network, and a row for each split."""
    config = report.config
    gated = "" if config.model.placement == "none" else f", gated in layers {_numbers(config.model.gated_layers)}"
    fold = "" if config.fold is None else f", fold {config.fold}"
    heading = (
        f"{report.task.title}{fold}: {config.model.backbone} of {config.model.layers} layers{gated}, "
        f"{report.params:,} parameters"
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("Split")
    for name in (report.task.metric, "loss", "unsupervised loss"):
        table.add_column(name, justify="right")
    for name, split in report.splits.items():
        unsupervised = "-" if split.unsupervised_loss is None else f"{split.unsupervised_loss:.6f}"
        table.add_row(name, f"{split.metric:.6f}", f"{split.loss:.6f}", unsupervised)
    how = "means of the batches' values" if config.train.reduction == "batch" else "over the whole split"
    return Group(Text(heading), table, Text(f"metrics and losses are {how}, batches of {config.train.batch_size}"))


def _numbers(layers: tuple[int, ...]) -> str:
    return ", ".join(map(str, layers))
