"""The parts of a table as plain text, for CSV files and the terminal."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from reports.summary.labels import Detail, Label
from reports.words.prose import Marked, Part

_EQUATED = {"num_clusters": "K", "sigma_m": "sigma_m", "layers": "L"}


def plain(part: Part) -> str:
    """``part`` without markup."""
    if isinstance(part, Label):
        details = ", ".join(plain(detail) for detail in part.details)
        return (f"{part.prefix}-" if part.prefix else "") + part.name + (f" ({details})" if details else "")
    if isinstance(part, Detail):
        if part.key in _EQUATED and part.value != "searched":
            return f"{_EQUATED[part.key]}={part.value}"
        name = _EQUATED.get(part.key, part.key.replace("_", " "))
        return f"{name} {part.value}"
    return part.words if isinstance(part, Marked) else part


def settings_text(settings: Iterable[tuple[str, object]]) -> str:
    """Settings by name in one cell of a CSV file, ordered by name; empty without any."""
    return "; ".join(f"{name}={value}" for name, value in sorted(settings))


def csv_text(fields: Sequence[str], records: Iterable[Mapping[str, object]]) -> str:
    """A CSV file of one line a record; what a record lacks is empty."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, fieldnames=fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _one_value(value) for name, value in record.items()} for record in records)
    return stream.getvalue()


def _one_value(value: object) -> object:
    # The writer puts no quotes around a bare carriage return, at which readers end the line.
    return value.replace("\r", " ") if isinstance(value, str) else value
