"""Record files of older versions: which columns they lack, and what is filled in so that everybody reads the newest.

A column is added by raising ``SCHEMA_VERSION`` and naming it here, with the value that older records imply.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache

import pyarrow as pa

from study.trial_record import SCHEMA, SCHEMA_VERSION

OLDEST_READ = 2

_ADDED = {3: ("precision",)}
"""Columns by the version that brought them."""


@cache
def schema_of(version: int) -> pa.Schema:
    """The columns of a file of ``version``, from :data:`OLDEST_READ` to the newest, in order."""
    later = {name for number, names in _ADDED.items() if number > version for name in names}
    return pa.schema([entry for entry in SCHEMA if entry.name not in later])


def columns_in_file(version: int, columns: Sequence[str] | None) -> list[str] | None:
    """What to read of a file of ``version`` so that :func:`as_of_now` can give ``columns`` (None: all of them)."""
    if columns is None or version == SCHEMA_VERSION:
        return None if columns is None else list(columns)
    held = set(schema_of(version).names)
    source = [] if held.issuperset(name.partition(".")[0] for name in columns) else ["config_json"]
    return list(dict.fromkeys([*(name for name in columns if name.partition(".")[0] in held), *source]))


def as_of_now(table: pa.Table, version: int, columns: Sequence[str] | None) -> pa.Table:
    """``table``, read from a file of ``version``, with the ``columns`` of the newest in the order given (None: theirs).

    The configurations in it must be JSON mappings.
    """
    if columns is None and version == SCHEMA_VERSION:
        return table
    # One order whatever the version: files of several become one table.
    asked = SCHEMA.names if columns is None else list(dict.fromkeys(name.partition(".")[0] for name in columns))
    if "precision" in asked and "precision" not in table.column_names:
        texts = table.column("config_json").to_pylist()
        table = table.append_column(SCHEMA.field("precision"), pa.array(map(_precision, texts), pa.string()))
    return table.select(asked).replace_schema_metadata(SCHEMA.metadata)


def _precision(config_json: str) -> str:
    """What a configuration says of it; the usual one is not said, as before there was a choice."""
    train = json.loads(config_json).get("train")
    found = train.get("precision") if isinstance(train, dict) else None
    return found if isinstance(found, str) else "float32"
