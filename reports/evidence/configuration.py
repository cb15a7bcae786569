"""A trial's configuration as names and texts; ``row`` holds the columns of its record."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def departures_of(row: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The settings in which a record departs from its semantics, by name."""
    if row["departures"] is None:
        return ()
    return tuple((name, value_text(value)) for name, value in sorted(json.loads(row["departures"]).items()))


def configuration_of(row: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """What the study asked for and got in size, then the settings that mean something, without seed and fold."""
    plain_settings: dict[str, Any] = {}
    for name, value in json.loads(row["config_json"]).items():
        plain_settings.update(value if isinstance(value, dict) else {name: value})
    sizes = {"budget": row["budget"], "params": row["params"]}
    left_out = {"seed", "fold", *sizes, *_without_effect(row)}
    # A record's own column is empty where the setting means nothing for the model.
    settings = {
        name: value
        for name, value in plain_settings.items()
        if name not in left_out and row.get(name, value) is not None
    }
    return tuple((str(name), value_text(value)) for name, value in {**sizes, **settings}.items() if value is not None)


def _without_effect(row: Mapping[str, Any]) -> Iterator[str]:
    """The settings that every record has and that mean nothing for the model of this one."""
    if row["backbone"] != "gat":
        yield "heads"
    if not row["task"].startswith("graph_"):
        yield "readout"


def value_text(value: object) -> str:
    """A setting's value to full precision, as a study file would hold it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ", ".join(value_text(item) for item in value)
    return repr(value) if isinstance(value, float) else str(value)
