"""What seeds cost that are trained together: ``python -m benchmarks.seeds_together``; ``--quick`` writes nothing.

Writes a part of docs/performance.md. Epochs of all seeds together are timed in turns with the same seeds one after
another and with a single one, loading and validation included; on a GPU where there is one, else on a CPU.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from rich.console import Console

from benchmarks.environment import start_as_a_worker
from benchmarks.graphs import drawn_graphs
from benchmarks.measure import Ratio, interleave
from benchmarks.operators import operators_of_steps, operators_together
from benchmarks.page import Table, place_of, versions_of, write_part
from bimp.budget import solve_hidden_dim
from bimp.config import BACKBONES, GAT_HEADS, Backbone, ModelConfig, TrainConfig, TrialConfig
from bimp.data import GraphSplit, PackedGraphs
from bimp.engine import EpochResult, fit
from bimp.stack.team import SeedRun
from bimp.stack.together import fit_together
from bimp.stack.worth import MOST_EDGES, MOST_NODES, MOST_NODES_OF_GRAPHSAGE, is_worth_stacking
from bimp.tasks import task_of

BUDGET, LAYERS, NUM_CLUSTERS = 100_000, 4, 8
STEPS = 2
"""Of an epoch; validation takes one batch."""
EPOCHS_BEFORE = 4
"""Of each contender, not counted: a process goes on taking memory for a few of them."""
TURNS, QUICK_TURNS = 6, 2
ENDLESS = 10**6
GPU_TARGET = 1.6


@dataclass(frozen=True, kw_only=True)
class Case:
    """Seeds or folds of one dataset at one batch size."""

    dataset: str
    batch_size: int
    seeds: int


CASES = (
    Case(dataset="enzymes", batch_size=20, seeds=10),
    Case(dataset="zinc", batch_size=32, seeds=4),
    Case(dataset="zinc", batch_size=128, seeds=4),
    Case(dataset="smnist", batch_size=32, seeds=4),
    Case(dataset="cluster", batch_size=16, seeds=4),
)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Of a case and a backbone: epochs of all seeds together, over those of all one by one and over a single one's.

    ``is_stacked``: together they are one network, and do not take turns. ``operators``: calls of captured steps of
    all over those of one.
    """

    case: Case
    backbone: Backbone
    is_stacked: bool
    of_separate: Ratio
    of_one: Ratio
    operators: float


def seed_runs(case: Case, backbone: Backbone, graphs: PackedGraphs) -> list[SeedRun]:
    """A boosting network of the case, once for each seed."""
    task = task_of(case.dataset)
    heads = GAT_HEADS if backbone == "gat" else 1
    vanilla = ModelConfig(backbone=backbone, layers=LAYERS, hidden_dim=1, heads=heads, placement="none")
    model = replace(
        solve_hidden_dim(vanilla, task, BUDGET),
        placement="boosting",
        gate="bilateral",
        num_clusters=NUM_CLUSTERS,
        sigma_m=1.0,
    )
    training = TrainConfig(
        max_epochs=ENDLESS,
        batch_size=case.batch_size,
        learning_rate=1e-3,
        lr_patience=ENDLESS,
        unsupervised_weight=0.1,
    )
    numbers = torch.arange(len(graphs))
    return [
        SeedRun(
            config=TrialConfig(dataset=case.dataset, model=model, train=training, seed=seed),
            train=GraphSplit(graphs, numbers),
            validation=GraphSplit(graphs, numbers[: case.batch_size]),
        )
        for seed in range(case.seeds)
    ]


def cost(case: Case, backbone: Backbone, graphs: PackedGraphs, device: torch.device, turns: int) -> Cost:
    """Time a case in turns."""
    runs = seed_runs(case, backbone, graphs)
    separate = [_epochs(run, device) for run in runs]
    one = _epochs(runs[0], device)
    together = fit_together(runs, device=device)
    for epochs in (*separate, one, together):
        for _ in range(EPOCHS_BEFORE):
            next(epochs)
    timings = interleave(
        {
            "separate": lambda _: [next(epochs) for epochs in separate],
            "together": lambda _: next(together),
            "one": lambda _: next(one),
        },
        turns,
    )
    plain = seed_runs(case, backbone, _floats(graphs))
    spent = {name: of.wall if device.type == "cuda" else of.cpu for name, of in timings.items()}
    return Cost(
        case=case,
        backbone=backbone,
        is_stacked=is_worth_stacking(runs[0].config, runs[0].train, device),
        of_separate=Ratio.between(spent["together"], spent["separate"]),
        of_one=Ratio.between(spent["together"], spent["one"]),
        operators=operators_together(plain).operators / operators_of_steps(plain[0].config, plain[0].train).operators,
    )


def _epochs(run: SeedRun, device: torch.device) -> Iterator[EpochResult]:
    return fit(run.config, run.train, run.validation, device=device)


def _floats(graphs: PackedGraphs) -> PackedGraphs:
    """The graphs with inputs of the default type."""
    given = {name: getattr(graphs, name) for name in ("x", "edge_attr", "y")}
    return replace(
        graphs, **{n: v.to(torch.bfloat16) for n, v in given.items() if v is not None and v.is_floating_point()}
    )


def costs_table(costs: Sequence[Cost], device: torch.device) -> Table:
    """Every case and backbone."""
    time = "time by the clock" if device.type == "cuda" else "CPU time"
    return Table(
        title="Epochs together",
        note=f"Ratios of {time}: an epoch of all seeds together over the epochs of all of them one after another, and "
        "over the epoch of one; and the operators of training steps as they are captured on a GPU, of all "
        "seeds together over those of one, Adam and measurements included.",
        columns=("Dataset", "Batch", "Seeds", "Backbone", "of separate", "of one", "Operators of one"),
        rows=tuple(
            (
                f"{task_of(cost.case.dataset).title}-like",
                str(cost.case.batch_size),
                str(cost.case.seeds),
                cost.backbone if cost.is_stacked else f"{cost.backbone} *",
                cost.of_separate.describe(),
                cost.of_one.describe(),
                f"{cost.operators:.2f}",
            )
            for cost in costs
        ),
        labels=4,
    )


def run(*, quick: bool) -> None:
    """Measure, print, and write the part of the page unless it is to be ``quick``."""
    torch.set_num_threads(1)
    console = Console()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    costs = []
    for case in CASES[:2] if quick else CASES:
        graphs = drawn_graphs(case.dataset, STEPS * case.batch_size)
        for backbone in BACKBONES:
            with console.status(f"timing {backbone} on {case.dataset}, {case.batch_size} graphs a step"):
                costs.append(cost(case, backbone, graphs, device, QUICK_TURNS if quick else TURNS))
    table = costs_table(costs, device)
    console.print(table.for_terminal())
    if not quick:
        write_part("seeds_together", "Seeds trained together", _introduction(costs, device), [table])
        console.print("written to docs/performance.md")


def _introduction(costs: Sequence[Cost], device: torch.device) -> list[str]:
    named = versions_of("python", "torch", "torch-geometric")
    slower = [cost for cost in costs if cost.of_separate.lower > 1]
    stacked = sum(cost.is_stacked for cost in costs)
    paragraphs = [
        f"`python -m benchmarks.seeds_together`, on {place_of(device)} with {named}, one thread. Networks with "
        f"boosting of {LAYERS} layers within {BUDGET:,} parameters on drawn graphs, epochs of {STEPS} steps and a "
        f"batch of validation, loading included; median of {TURNS} interleaved turns and, in parentheses, quartiles.",
        "A run takes this way where a study file says `seeds_together: true`, and does not by default. It was slower "
        f"than one by one, the lower quartile above 1, in {len(slower)} of {len(costs)} cells here, of those trained "
        f"as one network in {sum(cost.is_stacked for cost in slower)} of {stacked}.",
    ]
    if device.type == "cpu":
        paragraphs.append(
            f"In main memory GatedGCN beyond {MOST_EDGES:,} edges a batch, GCN and GAT beyond {MOST_NODES:,} "
            f"nodes and GraphSAGE beyond {MOST_NODES_OF_GRAPHSAGE:,} are no faster as one network of all seeds: they "
            "train an epoch of each in turn. Those cells have a star, and tell how far two measurements of the same "
            "work lie apart."
        )
    if device.type == "cuda":
        slowest = max(cost.of_one.median for cost in costs)
        met = "met" if slowest <= GPU_TARGET else "missed"
        paragraphs.append(f"At most {GPU_TARGET} times one seed was aimed at on a GPU: {slowest:.2f} at most, {met}.")
    else:
        paragraphs.append(
            f"No GPU was here: the target of at most {GPU_TARGET} times one seed is open. Steps of seeds together are "
            "captured and replayed there as those of a single seed are; they call at most "
            f"{max(cost.operators for cost in costs):.2f} times the operators, each of which takes longer on more rows."
        )
    return paragraphs


def main() -> None:
    """Start anew with the environment of a study's workers, which is read when a process starts; then measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few cells and turns; writes no page")
    quick: bool = parser.parse_args().quick
    start_as_a_worker("benchmarks.seeds_together")
    run(quick=quick)


if __name__ == "__main__":
    main()
