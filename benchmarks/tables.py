"""From timings to the tables of docs/performance.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from benchmarks.contenders import Cell
from benchmarks.measure import Ratio, Timings, milliseconds
from benchmarks.own_process import ProcessCost, Way
from benchmarks.page import Table
from bimp.tasks import task_of

CELL = ("Dataset", "Layers", "Backbone")
WAYS: Mapping[Way, str] = {"vanilla": "ours", "usual": "usual"}


def usual_way(cells: Sequence[Cell], extensions: str) -> Table:
    """The vanilla networks beside the same ones of MessagePassing layers."""
    return Table(
        title="Beside the usual way",
        note="A vanilla training step against the same network of PyTorch Geometric's `MessagePassing` layers "
        f"({extensions}). Losses and gradients were compared before. Milliseconds of CPU time (by the clock), loading "
        "left out; the fourth of these columns has each side's own loading in it. The last two have the products of "
        "matrices of our step alone, on other numbers that lie alike in memory, and how many times faster a step would "
        "be that did nothing else.",
        columns=(*CELL, "Ours, ms", "Usual, ms", "Times faster", "with loading", "Products, ms", "At most"),
        rows=tuple(
            (
                *_names(cell),
                cell.vanilla.describe(),
                cell.usual.describe(),
                Ratio.between(cell.usual.cpu, cell.vanilla.cpu).describe(),
                f"{Ratio.between(_sum(cell.usual, cell.collate), _sum(cell.vanilla, cell.gather)).median:.2f}",
                cell.products.describe(),
                f"{most_of_products(cell):.2f}",
            )
            for cell in cells
        ),
        labels=3,
    )


def gates(cells: Sequence[Cell]) -> Table:
    """Boosting beside vanilla."""
    return Table(
        title="What the gate costs",
        note="A training step with boosting (one layer gated, unsupervised loss included) over one without, at the "
        "same width. Milliseconds of CPU time (by the clock).",
        columns=(*CELL, "hidden_dim", "Vanilla, ms", "Boosting, ms", "Boosting / vanilla"),
        rows=tuple(
            (
                *_names(cell),
                str(cell.hidden_dim),
                cell.vanilla.describe(),
                cell.boosting.describe(),
                Ratio.between(cell.boosting.cpu, cell.vanilla.cpu).describe(),
            )
            for cell in cells
        ),
        labels=3,
    )


def shares(cells: Sequence[Cell]) -> Table:
    """What loading and evaluation take of the whole."""
    return Table(
        title="Loading and evaluation in the whole",
        note="Gathering's share of a vanilla step with its gathering, the share of an epoch with boosting that the "
        "evaluation of the validation split takes, gate statistics included, and the CPU time of such an epoch at the "
        "published sizes of the splits, loading and evaluation included.",
        columns=(*CELL, "Gathering / step", "Evaluation / epoch", "Epoch, CPU s"),
        rows=tuple(
            (
                *_names(cell),
                _percent(gathering_share(cell)),
                _percent(evaluation_share(cell)),
                f"{sum(_epoch(cell)):,.0f}",
            )
            for cell in cells
        ),
        labels=3,
    )


def loading(cells: Sequence[Cell]) -> Table:
    """Gathering beside PyTorch Geometric's collation."""
    first = {cell.workload.title: cell for cell in reversed(cells)}
    return Table(
        title="Loading a batch",
        note="A batch of a training run of GCN, gathered straight after a step without the inputs of edges, which GCN "
        "does not read, against `Batch.from_data_list` on graphs in memory, which collates them too. Milliseconds of "
        "CPU time (by the clock); nodes and edges are means.",
        columns=("Dataset", "Graphs", "Nodes", "Edges", "Gathered, ms", "PyTorch Geometric, ms", "Times faster"),
        rows=tuple(
            (
                title,
                str(cell.workload.batch_size),
                _mean_of_batches(cell, cell.workload.graphs.node_counts.sum().item()),
                _mean_of_batches(cell, cell.workload.graphs.edge_counts.sum().item()),
                cell.gather.describe(),
                cell.collate.describe(),
                Ratio.between(cell.collate.cpu, cell.gather.cpu).describe(),
            )
            for title, cell in reversed(first.items())
        ),
        labels=1,
    )


def memory(costs: Mapping[tuple[str, str], tuple[ProcessCost, ProcessCost]]) -> Table:
    """Peak memory of ours and of the usual way."""
    return Table(
        title="Peak memory",
        note="Vanilla training steps of 16 layers in processes of their own: the peak of the process (how much of it "
        "the steps added to libraries, network and batch), and ours over the usual way's, of what was added.",
        columns=("Dataset", "Backbone", "Ours, MB", "Usual, MB", "Ours / usual"),
        rows=tuple(
            (
                f"{task_of(dataset).title}-like",
                backbone,
                _megabytes(ours),
                _megabytes(usual),
                f"{ours.step_bytes / usual.step_bytes:.2f}",
            )
            for (dataset, backbone), (ours, usual) in costs.items()
        ),
        labels=2,
    )


def settings(costs: Mapping[Way, tuple[ProcessCost, ProcessCost]]) -> Table:
    """Processes without and with the allocator settings of workers."""
    return Table(
        title="Allocator settings of workers",
        note="A vanilla training step of GatedGCN, 4 layers, on CLUSTER-like batches in processes of their own, with "
        "the `MALLOC_` settings of `study.cluster.prepare_environment` and without: freed memory then stays with the "
        "process. They are read by glibc; elsewhere they do nothing. Milliseconds of CPU time (how much of it in the "
        "kernel).",
        columns=("Way", "Without, ms", "With, ms", "Times faster", "Peak without, MB", "with"),
        rows=tuple(
            (
                WAYS[way],
                _cost(off),
                _cost(on),
                f"{off.cpu / on.cpu:.2f}",
                f"{off.peak_bytes / 1e6:,.0f}",
                f"{on.peak_bytes / 1e6:,.0f}",
            )
            for way, (off, on) in costs.items()
        ),
        labels=1,
    )


def threads(costs: Mapping[tuple[int, str], tuple[ProcessCost, ProcessCost]]) -> Table:
    """One thread beside two."""
    return Table(
        title="Threads",
        note="A vanilla training step, 4 layers, on CLUSTER-like batches in processes of their own. Milliseconds of "
        "CPU time (by the clock). A study runs one trial for each core instead.",
        columns=("Threads", "Backbone", "Ours, ms", "Usual, ms", "Times faster by the clock"),
        rows=tuple(
            (
                str(count),
                backbone,
                f"{milliseconds(ours.cpu)} ({milliseconds(ours.wall)})",
                f"{milliseconds(usual.cpu)} ({milliseconds(usual.wall)})",
                f"{usual.wall / ours.wall:.2f}",
            )
            for (count, backbone), (ours, usual) in costs.items()
        ),
        labels=2,
    )


def most_of_products(cell: Cell) -> float:
    """How many times faster than the usual way a step would be that took its products and did nothing else."""
    return Ratio.between(cell.usual.cpu, cell.products.cpu).median


def gathering_share(cell: Cell) -> float:
    """Of a vanilla step with its gathering: the gathering."""
    return median(part / (part + rest) for part, rest in zip(cell.gather.cpu, cell.vanilla.cpu, strict=True))


def evaluation_share(cell: Cell) -> float:
    """Of an epoch with boosting: the evaluation of the validation split."""
    train, validation = _epoch(cell)
    return validation / (train + validation)


def _epoch(cell: Cell) -> tuple[float, float]:
    """CPU seconds of training and of evaluating one epoch, at the published sizes."""
    work = cell.workload
    train = work.train_graphs / work.batch_size * median(_sum(cell.boosting, cell.gather))
    return train, work.validation_graphs / work.batch_size * median(cell.evaluation.cpu)


def _names(cell: Cell) -> tuple[str, str, str]:
    return cell.workload.title, str(cell.layers), cell.backbone


def _mean_of_batches(cell: Cell, total: float) -> str:
    return f"{total / len(cell.workload.picks()):,.0f}"


def _sum(step: Timings, loading: Timings) -> list[float]:
    return [one + other for one, other in zip(step.cpu, loading.cpu, strict=True)]


def _megabytes(cost: ProcessCost) -> str:
    return f"{cost.peak_bytes / 1e6:,.0f} ({cost.step_bytes / 1e6:,.0f})"


def _cost(cost: ProcessCost) -> str:
    return f"{milliseconds(cost.cpu)} ({_percent(cost.system / cost.cpu)})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"
