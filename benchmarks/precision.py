"""What half precision changes in a metric and costs in time: ``python -m benchmarks.precision --data FOLDER``.

Trains the same trials in both precisions, in turns, on prepared datasets. Writes a part of docs/performance.md.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median, pstdev

import torch
from rich.console import Console

from benchmarks.page import Table, place_of, versions_of, write_part
from bimp.budget import solve_hidden_dim
from bimp.config import Backbone, ModelConfig, TrainConfig, TrialConfig
from bimp.data import DataError, PreparedDataset, open_prepared
from bimp.engine import EpochResult, fit
from bimp.tasks import task_of

CELLS: tuple[tuple[str, Backbone, int], ...] = (
    ("digits", "gcn", 20),
    ("digits", "gated_gcn", 20),
    ("zinc", "gcn", 6),
)
"""Dataset, backbone and epochs."""
SEEDS = (41, 95, 12, 35)
BUDGET = 100_000
LAYERS = 4


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One trial in both precisions: validation metrics of the last epoch, and CPU seconds of all."""

    metrics: tuple[float, float]
    seconds: tuple[float, float]


def trial(dataset: str, backbone: Backbone, epochs: int, seed: int) -> TrialConfig:
    """Boosting, by the dataset's protocol."""
    task = task_of(dataset)
    model = ModelConfig(
        backbone=backbone,
        layers=LAYERS,
        hidden_dim=1,
        placement="boosting",
        gate="bilateral",
        num_clusters=8,
        sigma_m=1.0,
    )
    return TrialConfig(
        dataset=dataset,
        model=solve_hidden_dim(model, task, BUDGET),
        train=TrainConfig(
            max_epochs=epochs,
            batch_size=task.protocol.batch_size,
            learning_rate=task.protocol.learning_rate,
            unsupervised_weight=1.0,
        ),
        seed=seed,
    )


def train_both(config: TrialConfig, data: PreparedDataset, device: torch.device) -> Pair:
    """Train ``config`` in both precisions, an epoch of each at a time."""
    train, validation = data.split("train", None), data.split("val", None)
    half = replace(config, train=replace(config.train, precision="bfloat16"))
    runs = [fit(one, train, validation, device=device) for one in (config, half)]
    seconds = [0.0, 0.0]
    last: list[EpochResult] = []
    for _ in range(config.train.max_epochs):
        last = []
        for number, run in enumerate(runs):
            started = time.process_time()
            last.append(next(run))
            seconds[number] += time.process_time() - started
    plain, halved = (result.validation.metric if result.validation else float("nan") for result in last)
    return Pair(metrics=(plain, halved), seconds=(seconds[0], seconds[1]))


def row(dataset: str, backbone: Backbone, epochs: int, pairs: list[Pair]) -> tuple[str, ...]:
    """A line of the table."""
    plain, half = zip(*(pair.metrics for pair in pairs), strict=True)
    differences = [pair.metrics[1] - pair.metrics[0] for pair in pairs]
    ratio = median(pair.seconds[1] / pair.seconds[0] for pair in pairs)
    task = task_of(dataset)
    return (
        f"{task.title}, {task.metric}",
        backbone,
        str(epochs),
        f"{mean(plain):.4f} +- {pstdev(plain):.4f}",
        f"{mean(half):.4f} +- {pstdev(half):.4f}",
        f"{mean(differences):+.4f} +- {pstdev(differences):.4f}",
        f"{ratio:.2f}",
    )


def main() -> None:
    """Measure and write the part of the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("data"), help="prepared datasets (default: data)")
    folder: Path = parser.parse_args().data
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    console = Console()
    rows = []
    try:
        prepared = {dataset: open_prepared(dataset, folder) for dataset, _, _ in CELLS}
    except DataError as error:
        parser.error(str(error))
    for dataset, backbone, epochs in CELLS:
        with console.status(f"training {backbone} on {dataset}"):
            data = prepared[dataset]
            pairs = [train_both(trial(dataset, backbone, epochs, seed), data, device) for seed in SEEDS]
        rows.append(row(dataset, backbone, epochs, pairs))
    table = Table(
        title="Half precision beside full precision",
        note=f"Boosting, {LAYERS} layers within {BUDGET:,} parameters, {len(SEEDS)} seeds, few epochs: the validation "
        "metric after the last (mean and population standard deviation over the seeds), what half precision adds to it "
        "with the same seed, and its CPU time over that of full precision.",
        columns=("Dataset", "Backbone", "Epochs", "float32", "bfloat16", "Difference", "Time"),
        rows=tuple(rows),
        labels=2,
    )
    console.print(table.for_terminal())
    paragraph = (
        f"`python -m benchmarks.precision`, on {place_of(device)} with {versions_of('torch')}. `precision: "
        "bfloat16` takes the products of the linear maps in half precision, as autocast does; parameters, gates, "
        "normalisation, sums along edges and losses stay in full. On a CPU it also leaves the kernels for main memory "
        "aside. It is part of a trial's identity and off by default."
    )
    write_part("precision", "Half precision", (paragraph,), [table])
    console.print("written to docs/performance.md")


if __name__ == "__main__":
    main()
