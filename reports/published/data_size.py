"""Whether a study's data is as much as the paper's dataset of that name."""

from __future__ import annotations

from reports.published.rows import paper_datasets
from reports.records.used_data import UsedData


def published_graphs(used: UsedData) -> int | None:
    """Graphs of the paper's dataset of that name; None where it has none."""
    found = (row.graphs for row in paper_datasets() if row.dataset.casefold() == used.title.casefold())
    return next(found, None)


def has_other_size(used: UsedData) -> bool:
    """Whether the paper's dataset of that name has another number of graphs."""
    return published_graphs(used) not in (None, used.graphs)


def amount_text(used: UsedData) -> str:
    """How much it is, and beside that the paper's where it is another."""
    splits = ", ".join(f"{name} {count:,}" for name, count in used.split_graphs)
    beside = f", where the paper has {published_graphs(used):,}" if has_other_size(used) else ""
    return f"{used.graphs:,} graphs ({splits}){beside}"
