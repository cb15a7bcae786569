"""Whether the values of a record can be what its columns are for; the types alone are Parquet's to hold."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc

from study.trial_record import Status

WORDS = {"status": get_args(Status), "phase": ("search", "confirm"), "direction": ("min", "max")}
"""Columns that hold one of a few words."""

_LAST_SECOND = 253_402_300_799.0
"""Of the year 9999, in Unix seconds: no later time has a date."""

RANGES: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("layers", "hidden_dim", "heads", "batch_size", "max_epochs", "threads"), (1, math.inf)),
    **dict.fromkeys(("budget", "num_clusters"), (1, math.inf)),
    **dict.fromkeys(("number", "params", "unsupervised_weight", "lr_patience", "time_limit_s"), (0, math.inf)),
    **dict.fromkeys(("seconds", "started_at", "ended_at"), (0, _LAST_SECOND)),
}
"""Columns of numbers that have a least and a greatest value, both included; null may stand where the column lets it."""

EPOCH_RANGES: dict[str, tuple[float, float]] = {
    "epoch": (1, math.inf),
    **dict.fromkeys(("seconds", "ended_at"), (0, _LAST_SECOND)),
}
"""The same of each epoch."""

MAPPINGS = {"config_json": ("model", "train"), "versions_json": (), "departures": ()}
"""Columns that hold JSON mappings, or null; with keys whose values, where there are any, are mappings again."""

_LONGEST_VALUE = 60


def wrong_value(table: pa.Table) -> tuple[str, str] | None:
    """The first value of ``table`` that no record has: the key of its trial; which column, what was found and expected.

    ``table`` has the column ``key`` and any of the others. Its rows are looked at together: most of the time that a
    table of one row takes is that of the calls.
    """
    return next(_wrong_values(table), None)


def _wrong_values(table: pa.Table) -> Iterator[tuple[str, str]]:
    for column in table.column_names:
        values = table.column(column)
        if column in WORDS:
            known = pc.is_in(values, value_set=pa.array(WORDS[column], pa.string()))
            for key, found in _chosen(table, column, pc.invert(known)):
                yield key, f"{column}: found {_shown(found)}, expected one of {', '.join(WORDS[column])}"
        elif column in RANGES:
            for key, found in _chosen(table, column, _outside(values, *RANGES[column])):
                yield key, f"{column}: found {_shown(found)}, expected {_range_text(*RANGES[column])}"
        elif column in MAPPINGS:
            for key, found in zip(table.column("key").to_pylist(), values.to_pylist(), strict=True):
                trouble = None if found is None else _trouble(found, MAPPINGS[column])
                if trouble is not None:
                    yield key, f"{column}: {trouble}"
        elif column == "epochs":
            yield from _wrong_epochs(table)


def _wrong_epochs(table: pa.Table) -> Iterator[tuple[str, str]]:
    for chunk, keys in zip(table.column("epochs").chunks, _keys_by_chunk(table), strict=True):
        epochs = chunk.flatten()
        for name in (entry.name for entry in epochs.type if entry.name in EPOCH_RANGES):
            wrong = _outside(epochs.field(name), *EPOCH_RANGES[name])
            for place in pc.indices_nonzero(pc.fill_null(wrong, False)).to_pylist():
                key = keys[pc.list_parent_indices(chunk)[place].as_py()].as_py()
                found, expected = _shown(epochs.field(name)[place].as_py()), _range_text(*EPOCH_RANGES[name])
                yield key, f"epochs: {name}: found {found}, expected {expected}"


def _keys_by_chunk(table: pa.Table) -> Iterator[pa.ChunkedArray]:
    start = 0
    for chunk in table.column("epochs").chunks:
        yield table.column("key").slice(start, len(chunk))
        start += len(chunk)


def _chosen(table: pa.Table, column: str, which: pa.ChunkedArray) -> Iterator[tuple[str, Any]]:
    chosen = table.select(["key", column]).filter(which)
    yield from zip(chosen.column("key").to_pylist(), chosen.column(column).to_pylist(), strict=True)


def _outside(values: Any, least: float, most: float) -> Any:
    """Where ``values`` are not from ``least`` to ``most``, NaN included; null where they are null."""
    inside = pc.greater_equal(values, pa.scalar(least, values.type))
    if math.isfinite(most):
        inside = pc.and_(inside, pc.less_equal(values, pa.scalar(most, values.type)))
    return pc.invert(inside)


def _range_text(least: float, most: float) -> str:
    return f"{least:g} or more" if math.isinf(most) else f"a number from {least:g} to {most:.0f}"


def _trouble(text: str, parts: tuple[str, ...]) -> str | None:
    """Why ``text`` is no JSON mapping whose ``parts`` are mappings; None where it is one."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"not readable as JSON ({error})"
    if not isinstance(found, dict):
        return f"found {_shown(found)}, expected a mapping"
    for part in parts:
        if not isinstance(found.get(part, {}), dict):
            return f"{part}: found {_shown(found[part])}, expected a mapping"
    return None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."
