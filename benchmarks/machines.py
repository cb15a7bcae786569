"""The same targets on different processors: a part of docs/performance.md and the table it is made of.

Both sides of a comparison take the same products, and how long these take beside everything else depends on the core.
A ratio of one machine therefore stands beside those of others.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import torch
import torch.nn.functional as F

from benchmarks.measure import interleave
from benchmarks.page import PERFORMANCE, Table, processor, write_part
from bimp.kernels.linear import by_onednn, offers_onednn

NOTED = PERFORMANCE.with_name("performance_machines.csv")
"""What was measured where: machine, target, measured."""
ROWS = 2944
"""Of the products by which processors are compared: the nodes of a ZINC-like batch."""
WIDTHS = (168, 171)
"""Of these products: GAT's and GCN's of 16 layers, a whole multiple of 8 and none."""
TURNS = 50


def product_speeds() -> list[tuple[str, str]]:
    """How fast this core multiplies in float32, as PyTorch does by itself and by oneDNN, between which ours chooses."""
    return [speed for width in WIDTHS for speed in _speeds(width)]


def _speeds(width: int) -> list[tuple[str, str]]:
    rows, grad, weight = torch.randn(ROWS, width), torch.randn(ROWS, width), torch.randn(width, width)
    ways: dict[str, Callable[[int], object]] = {
        "Products of {size}, by PyTorch's choice": lambda _: F.linear(rows, weight),
        "Weight's gradient of {size}, by PyTorch's choice": lambda _: grad.t() @ rows,
    }
    if offers_onednn():
        ways["Products of {size}, by oneDNN"] = lambda _: by_onednn(rows, weight)
        ways["Weight's gradient of {size}, by oneDNN"] = lambda _: by_onednn(grad.t(), rows.t())
    spent = interleave(ways, TURNS)
    operations, size = 2 * ROWS * width * width, f"{ROWS:,} rows, {width} wide"
    return [
        (f"{way.format(size=size)}, GFLOP/s", f"{operations / median(each.cpu) / 1e9:.0f}")
        for way, each in spent.items()
    ]


def note(measured: Sequence[tuple[str, str]]) -> None:
    """Keep what this machine measured, a target and a figure each, and write the part of docs/performance.md."""
    keep(NOTED, processor(), measured)
    introduction = (
        "`python -m benchmarks.step`, each machine's last measurement of a target, on one thread. Both ways take the "
        "same products of matrices; the faster a core takes these, the more the rest of a step counts.",
    )
    write_part("machines", "Targets on different processors", introduction, [by_machine(NOTED)])


def keep(noted: Path, machine: str, measured: Sequence[tuple[str, str]]) -> None:
    """Put what ``machine`` measured in the place of what it had measured of the same; all else stays."""
    kept = {(other, target): value for other, target, value in _read(noted)}
    kept.update({(machine, target): value for target, value in measured})
    with noted.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("machine", "target", "measured"))
        writer.writerows((other, target, value) for (other, target), value in kept.items())


def by_machine(noted: Path) -> Table:
    """A row for each target, a column for each machine."""
    found = {(machine, target): value for machine, target, value in _read(noted)}
    machines = list(dict.fromkeys(machine for machine, _ in found))
    targets = list(dict.fromkeys(target for _, target in found))
    return Table(
        title="By processor",
        note="A dash: not measured there.",
        columns=("Target", *machines),
        rows=tuple((target, *(found.get((machine, target), "-") for machine in machines)) for target in targets),
        labels=1,
    )


def _read(noted: Path) -> list[tuple[str, str, str]]:
    if not noted.exists():
        return []
    with noted.open(encoding="utf-8", newline="") as file:
        return [(row["machine"], row["target"], row["measured"]) for row in csv.DictReader(file)]
