"""What is aimed at beside what was measured: the first table of docs/performance.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from benchmarks.contenders import Cell
from benchmarks.measure import Ratio, milliseconds
from benchmarks.own_process import ProcessCost
from benchmarks.page import Table
from benchmarks.tables import evaluation_share, gathering_share, most_of_products

FASTER = 2.0
LARGEST_STEP_S = 3.5
MEMORY_SHARE = 0.5
GATE = 1.15
GATE_ON_EDGES = 1.5
EVALUATION_SHARE = 0.08
GATHERING_SHARE = 0.02


def summary(
    cells: Sequence[Cell],
    memory: Mapping[tuple[str, str], tuple[ProcessCost, ProcessCost]],
    largest: ProcessCost | None,
) -> Table:
    """Each target, what was measured, and whether it is met."""
    rows: list[tuple[str, str, str]] = []

    def add(target: str, found: float, is_met: bool, tell: Callable[[float], str] = "{:.2f}".format) -> None:
        rows.append((target, tell(found), "yes" if is_met else "no"))

    for title in dict.fromkeys(cell.workload.title for cell in cells):
        speeds = [speed_of(cell) for cell in cells if cell.workload.title == title]
        add(f"{title}: {FASTER:.0f} times the usual way, median cell", median(speeds), median(speeds) >= FASTER)
        add(f"{title}: never slower than the usual way, slowest cell", min(speeds), min(speeds) >= 1)
    if largest is not None:
        add(
            f"bi-GatedGCN of 16 layers, 32 CLUSTER-like graphs: under {1000 * LARGEST_STEP_S:,.0f} CPU ms",
            largest.cpu,
            largest.cpu < LARGEST_STEP_S,
            milliseconds,
        )
    if memory:
        ours, usual = memory["cluster", "gated_gcn"]
        share = ours.step_bytes / usual.step_bytes
        add("GatedGCN on these: half the usual way's memory", share, share < MEMORY_SHARE)
    gates = [gate_cost(cell) for cell in cells]
    add("Gate at boosting: 1.15 times vanilla, median cell", median(gates), median(gates) <= GATE)
    on_edges = [gate_cost(cell) for cell in cells if cell.backbone == "gat" or cell.workload.name == "tsp"]
    add("Gate on TSP-like graphs and of GAT: 1.5 times, dearest cell", max(on_edges), max(on_edges) <= GATE_ON_EDGES)
    evaluation = max(evaluation_share(cell) for cell in cells)
    add("Evaluation: under 8% of an epoch, dearest cell", evaluation, evaluation < EVALUATION_SHARE, "{:.1%}".format)
    loads: dict[str, list[float]] = {}
    for cell in cells:
        loads.setdefault(cell.workload.title, []).append(gathering_share(cell))
    for what, share in (
        ("median cell of the dearest dataset", max(median(shares) for shares in loads.values())),
        ("dearest cell", max(max(shares) for shares in loads.values())),
    ):
        add(f"Loading: under 2% of a step, {what}", share, share < GATHERING_SHARE, "{:.2%}".format)
    return Table(
        title="What is aimed at",
        note="Cells are the four backbones at 4 and at 16 layers.",
        columns=("Target", "Measured", "Met"),
        rows=tuple(rows),
        labels=1,
    )


def limits(cells: Sequence[Cell]) -> list[tuple[str, str]]:
    """Of each dataset's median cell: how many times the usual way's speed the products of a step leave at most."""
    titles = dict.fromkeys(cell.workload.title for cell in cells)
    most = {title: [most_of_products(cell) for cell in cells if cell.workload.title == title] for title in titles}
    return [
        (f"{title}: what its products leave at most, median cell", f"{median(most[title]):.2f}") for title in titles
    ]


def speed_of(cell: Cell) -> float:
    """How many times faster than the usual way, in CPU time."""
    return Ratio.between(cell.usual.cpu, cell.vanilla.cpu).median


def gate_cost(cell: Cell) -> float:
    """A step with boosting over one without."""
    return Ratio.between(cell.boosting.cpu, cell.vanilla.cpu).median
