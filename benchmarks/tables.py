"""From timings to the tables of docs/performance.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from benchmarks.allocation import ProcessCost
from benchmarks.contenders import DatasetTimings
from benchmarks.measure import Ratio, Timings, milliseconds
from benchmarks.page import Table
from bimp.config import BACKBONES, Backbone


def loading(datasets: Sequence[DatasetTimings]) -> Table:
    """Gathering beside PyTorch Geometric's collation."""
    return Table(
        title="Loading a batch",
        note="`PackedGraphs.gather` against `Batch.from_data_list` on the same graphs, both from memory. Milliseconds "
        "of CPU time (by the clock).",
        columns=("Dataset", "Graphs", "Nodes", "Edges", "Gathered, ms", "PyTorch Geometric, ms", "Times faster"),
        rows=tuple(
            (
                timed.dataset,
                str(timed.batch_size),
                f"{timed.nodes:,.0f}",
                f"{timed.edges:,.0f}",
                timed.gather.describe(),
                timed.collate.describe(),
                Ratio.between(timed.collate.cpu, timed.gather.cpu).describe(),
            )
            for timed in datasets
        ),
        labels=1,
    )


def gates(datasets: Sequence[DatasetTimings]) -> Table:
    """Boosting beside vanilla."""
    return Table(
        title="What the gate costs",
        note="A training step with boosting (layer 2 gated, unsupervised loss included) over one without, at the "
        "same width. Milliseconds of CPU time (by the clock).",
        columns=("Dataset", "Backbone", "hidden_dim", "Vanilla, ms", "Boosting, ms", "Boosting / vanilla"),
        rows=tuple(
            (
                timed.dataset,
                backbone,
                str(timed.widths[backbone]),
                timed.vanilla[backbone].describe(),
                timed.boosting[backbone].describe(),
                Ratio.between(timed.boosting[backbone].cpu, timed.vanilla[backbone].cpu).describe(),
            )
            for timed, backbone in _cells(datasets)
        ),
        labels=2,
    )


def shares(datasets: Sequence[DatasetTimings]) -> Table:
    """What loading and evaluation take of the whole."""
    return Table(
        title="Loading and evaluation in the whole",
        note="Gathering's share of a vanilla step with its gathering, and the share of an epoch with boosting that the "
        "evaluation of the validation split takes, gate statistics included. CPU time.",
        columns=("Dataset", "Backbone", "Gathering / step", "Evaluation / epoch"),
        rows=tuple(
            (
                timed.dataset,
                backbone,
                _percent(_share(timed.gather, timed.vanilla[backbone])),
                _percent(_evaluation_share(timed, backbone)),
            )
            for timed, backbone in _cells(datasets)
        ),
        labels=2,
    )


def usual_way(datasets: Sequence[DatasetTimings], extensions: str) -> Table:
    """The vanilla networks beside the same ones of MessagePassing layers."""
    return Table(
        title="Beside the usual way",
        note="A vanilla training step against the same network of PyTorch Geometric's `MessagePassing` layers "
        f"({extensions}). Losses and gradients were compared before. Milliseconds of CPU time (by the clock), loading "
        "left out; the last column has each side's own loading in it.",
        columns=("Dataset", "Backbone", "Ours, ms", "Usual, ms", "Times faster", "with loading"),
        rows=tuple(
            (
                timed.dataset,
                backbone,
                timed.vanilla[backbone].describe(),
                timed.usual[backbone].describe(),
                Ratio.between(timed.usual[backbone].cpu, timed.vanilla[backbone].cpu).describe(),
                Ratio.between(
                    _sum(timed.usual[backbone], timed.collate), _sum(timed.vanilla[backbone], timed.gather)
                ).describe(),
            )
            for timed, backbone in _cells(datasets)
        ),
        labels=2,
    )


def allocation(costs: Mapping[str, tuple[Sequence[ProcessCost], Sequence[ProcessCost]]]) -> Table:
    """Worker processes with and without their allocator settings."""
    return Table(
        title="Allocator settings of workers",
        note="A training step of GatedGCN with boosting in processes of their own, with the `MALLOC_` settings of "
        "`study.cluster.prepare_environment` and without: freed memory then stays with the process. They are read by "
        "glibc; elsewhere they do nothing. Milliseconds of CPU time (how much of it in the kernel), and the peak "
        "of the process's memory.",
        columns=("Batch", "Without, ms", "With, ms", "Times faster", "Peak without, MB", "with"),
        rows=tuple(
            (
                batch,
                _cost(off),
                _cost(on),
                Ratio.between([cost.cpu for cost in off], [cost.cpu for cost in on]).describe(),
                f"{median(cost.peak_bytes for cost in off) / 1e6:,.0f}",
                f"{median(cost.peak_bytes for cost in on) / 1e6:,.0f}",
            )
            for batch, (off, on) in costs.items()
        ),
        labels=1,
    )


def _cells(datasets: Sequence[DatasetTimings]) -> list[tuple[DatasetTimings, Backbone]]:
    return [(timed, backbone) for timed in datasets for backbone in BACKBONES]


def _sum(step: Timings, loading: Timings) -> list[float]:
    return [one + other for one, other in zip(step.cpu, loading.cpu, strict=True)]


def _share(part: Timings, rest: Timings) -> float:
    return median(one / (one + other) for one, other in zip(part.cpu, rest.cpu, strict=True))


def _evaluation_share(timed: DatasetTimings, backbone: Backbone) -> float:
    train = timed.train_graphs * median(_sum(timed.boosting[backbone], timed.gather))
    validation = timed.validation_graphs * median(timed.evaluation[backbone].cpu)
    return validation / (train + validation)


def _cost(costs: Sequence[ProcessCost]) -> str:
    kernel = median(cost.system / cost.cpu for cost in costs)
    return f"{milliseconds(median(cost.cpu for cost in costs))} ({_percent(kernel)})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"
