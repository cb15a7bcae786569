"""What all the paper's tables would cost on this machine's device: ``python -m benchmarks.paper_cost``.

Each of the 76 models is trained for a few steps on drawn graphs, by the authors' protocol, through the same function
that a trial runs; the published sizes of the splits and the printed epochs do the rest. TSP's gated models, which the
authors trained a graph at a time, are measured at the batch of the vanilla ones too. Writes a part of
docs/performance.md. ``--only DATASET`` measures one dataset and writes nothing.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

import torch
from rich.console import Console

from benchmarks.environment import start_as_a_worker
from benchmarks.graphs import drawn_graphs
from benchmarks.page import Table, place_of, versions_of, write_part
from benchmarks.paper_models import PaperModel, paper_models
from bimp.data import GraphSplit, PackedGraphs
from bimp.tasks import task_of
from study.probe import probe

HOUR_S = 3600.0
DAY_HOURS = 24.0
BATCHES = 3
"""Batches of a shortened epoch; at least :data:`FEWEST_GRAPHS` graphs."""
FEWEST_GRAPHS = 24

SPLITS = {
    "zinc": (10_000, 1_000),
    "smnist": (55_000, 5_000),
    "cifar10": (45_000, 5_000),
    "tsp": (10_000, 1_000),
    "cluster": (10_000, 1_000),
    "dd": (942, 118),
    "enzymes": (480, 60),
    "proteins": (890, 111),
}
"""Graphs to train and to validate on, as published; of the last three in a fold of ten."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """One model at one batch size.

    Attributes:
        model: of the paper.
        batch_size: graphs of a step.
        seconds_an_epoch: training and validation at the published sizes.
    """

    model: PaperModel
    batch_size: int
    seconds_an_epoch: float

    @property
    def steps(self) -> float:
        """Training steps of all runs."""
        train, _ = SPLITS[self.model.config.dataset]
        return self.model.runs * self.model.epochs * math.ceil(train / self.batch_size)

    @property
    def hours(self) -> float:
        """Of all runs, one after the other."""
        return self.model.runs * self.model.epochs * self.seconds_an_epoch / HOUR_S

    @property
    def is_strict(self) -> bool:
        """Whether the batch is the authors'."""
        return self.batch_size == self.model.config.train.batch_size


def measured(model: PaperModel, batch_size: int, graphs: PackedGraphs, device: torch.device) -> Cost:
    """Train a few steps of ``model`` on drawn graphs."""
    config = replace(model.config, train=replace(model.config.train, batch_size=batch_size))
    train_graphs, validation_graphs = SPLITS[config.dataset]
    count = drawn_for(batch_size)
    encoded = graphs
    if config.model.pos_enc_dim is not None:
        encodings = torch.randn(graphs.x.shape[0], config.model.pos_enc_dim, generator=torch.Generator().manual_seed(0))
        encoded = replace(graphs, pos_enc=encodings)
    train = GraphSplit(encoded, torch.arange(count))
    validation = GraphSplit(encoded, torch.arange(max(1, round(count * validation_graphs / train_graphs))))
    wall, cpu = time.perf_counter(), time.process_time()
    found = probe(config, train, validation, device)
    had = (time.process_time() - cpu) / (time.perf_counter() - wall)
    # On a core, the time in which other programs had it does not count.
    share = min(1.0, had) if device.type == "cpu" else 1.0
    steps, published = math.ceil(count / batch_size), math.ceil(train_graphs / batch_size)
    return Cost(model=model, batch_size=batch_size, seconds_an_epoch=share * found.seconds_an_epoch * published / steps)


def drawn_for(batch_size: int) -> int:
    """Graphs of a shortened epoch, in whole batches."""
    return batch_size * max(BATCHES, math.ceil(FEWEST_GRAPHS / batch_size))


def all_costs(models: Sequence[PaperModel], device: torch.device, console: Console) -> list[Cost]:
    """Every model at the authors' batch, and TSP's gated ones also at the batch of the vanilla ones."""
    costs = []
    for dataset in dict.fromkeys(model.config.dataset for model in models):
        of_dataset = [model for model in models if model.config.dataset == dataset]
        sizes = {model.config.train.batch_size for model in of_dataset}
        graphs = drawn_graphs(dataset, max(drawn_for(size) for size in sizes))
        batched = max(sizes)
        for model in of_dataset:
            own = model.config.train.batch_size
            for batch_size in dict.fromkeys((own, batched) if own == 1 else (own,)):
                with console.status(f"{model.row.name}, {batch_size} graphs a step"):
                    costs.append(measured(model, batch_size, graphs, device))
    return costs


def strict(costs: Iterable[Cost]) -> list[Cost]:
    """By the authors' protocol."""
    return [cost for cost in costs if cost.is_strict]


def batched(costs: Iterable[Cost]) -> list[Cost]:
    """With TSP's gated models at the batch of the vanilla ones."""
    return [cost for cost in costs if not (cost.is_strict and cost.batch_size == 1)]


def table(costs: Sequence[Cost], device: torch.device) -> Table:
    """Hours by dataset and depth, and of all."""
    groups: dict[tuple[str, int, int], list[Cost]] = {}
    for cost in costs:
        config = cost.model.config
        single = 1 if cost.batch_size == 1 else 0
        batch_key = single if config.dataset == "tsp" else 0
        groups.setdefault((task_of(config.dataset).title, config.model.layers, batch_key), []).append(cost)
    rows = [_row(name, layers, group) for (name, layers, _), group in groups.items()]
    for title, chosen in (("All, strictly", strict(costs)), ("All, TSP batched", batched(costs))):
        rows.append(_row(title, None, chosen))
    unit = "GPU-hours" if device.type == "cuda" else "Core-hours"
    return Table(
        title="What the paper's tables cost",
        note="Runs are models times seeds (four, or ten folds); steps those of all runs. `All, strictly` holds TSP's "
        "gated models at the authors' batch of one graph, `All, TSP batched` at the batch of the vanilla ones.",
        columns=("Dataset", "Layers", "Graphs a step", "Models", "Runs", "Steps, millions", "s an epoch, median", unit),
        rows=tuple(rows),
        labels=3,
    )


def _row(name: str, layers: int | None, costs: Sequence[Cost]) -> tuple[str, ...]:
    sizes = sorted({cost.batch_size for cost in costs})
    return (
        name,
        "" if layers is None else str(layers),
        "" if layers is None else ", ".join(map(str, sizes)),
        str(len(costs)),
        str(sum(cost.model.runs for cost in costs)),
        f"{sum(cost.steps for cost in costs) / 1e6:.2f}",
        "" if layers is None else f"{median(cost.seconds_an_epoch for cost in costs):.3g}",
        f"{sum(cost.hours for cost in costs):,.1f}",
    )


def introduction(costs: Sequence[Cost], device: torch.device) -> tuple[str, ...]:
    """Where and how this was measured, and how far the goal is."""
    named = versions_of("python", "torch")
    where = place_of(device) if device.type == "cuda" else f"one core of {place_of(device)}"
    days = sum(cost.hours for cost in batched(costs)) / DAY_HOURS
    goal = (
        f"The goal, all of it in a day on one card with TSP batched, comes to {days:.2f} days here."
        if device.type == "cuda"
        else f"The goal is a day on one H100 with TSP batched; without a GPU here, these are hours of a core, "
        f"{days:,.0f} days of one in all. Run the same command on a machine with a card."
    )
    return (
        f"`python -m benchmarks.paper_cost`, measured on {where} with {named}. Each model of the paper's tables (the "
        "studies search_spaces/paper_*.yaml) was trained for a few steps of the size that the authors used, on drawn "
        "graphs, through the function that a trial runs: loading, training, validation. A run is taken to last as "
        "many epochs as the paper prints, without the authors' limit of twelve hours, and to share the device with "
        "no other: of a core's time, what other programs had meanwhile is taken off.",
        goal,
    )


def main() -> None:
    """Measure all models and write the part of the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="DATASET", help="one dataset; writes no page")
    only: str | None = parser.parse_args().only
    start_as_a_worker("benchmarks.paper_cost")
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    console = Console()
    models = [model for model in paper_models() if only in (None, model.config.dataset)]
    if not models:
        parser.error(f"--only: found {only!r}, expected one of {', '.join(SPLITS)}")
    costs = all_costs(models, device, console)
    found = table(costs, device)
    console.print(found.for_terminal())
    if only is None:
        write_part("paper_cost", "Reproducing the paper's tables", introduction(costs, device), [found])
        console.print("written to docs/performance.md")


if __name__ == "__main__":
    main()
