"""The pages of docs/ as tests read them: their sections, and the rows of their tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """What stands between ``heading`` and the next one, of whatever level."""
    below = text.partition(f"\n{heading}\n")[2]
    assert below, heading
    return re.split(r"^#+ ", below, maxsplit=1, flags=re.MULTILINE)[0]


def rows(text: str) -> Iterator[list[str]]:
    """The cells of every row of the tables in ``text``, heads left out."""
    for line in text.splitlines():
        if line.startswith("| ") and not line.startswith("| ---"):
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def first_names(text: str) -> list[str]:
    return [name for row in rows(text) for name in named(row[0])]
