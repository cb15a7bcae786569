"""The plan of a study, ``plan.json``: which cells its table has, in which order, and how many runs each asks for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from study.found_study import NoStudyError, require_study
from study.store_access import StoreAccessError

PLAN_FORMAT = 1
PLAN_FILE = "plan.json"
METRICS = ("mae", "accuracy", "balanced_accuracy", "f1")
DIRECTIONS = ("min", "max")


class ResultsError(ValueError):
    """A results folder that no table can be made of; the message is one line: what, where, how to mend it."""


@dataclass(frozen=True, kw_only=True)
class PlanCell:
    """One cell of the table, as the study planned it.

    ``layers``, ``budget``, ``hidden_dim``, ``placement``, ``gate``, ``num_clusters``, ``sigma_m`` and
    ``unsupervised_weight`` are None where the value is searched within the cell or does not exist for it.

    Attributes:
        id: name of the cell; the ``cell`` of its records.
        dataset, dataset_title: its name in a study file, and in a table.
        semantics, pos_enc_dim: as the study file gives them; None where it does not, or in a plan of an older version.
        metric, direction: what is reported, and whether a smaller (``min``) or larger (``max``) value is better.
        departures: settings whose value is not that of the study's semantics, by name, as text.
        other_settings: of model and training, without a field here, the same in all trials; by name, as text. None in
            a plan of an older version, which does not hold them.
        searched: names of what is searched within the cell; none in a plan of an older version.
        seeds, folds: every seed is run on every fold; ``folds`` is None where the dataset has one split.
    """

    id: str
    dataset: str
    dataset_title: str
    metric: str
    direction: str
    backbone: str
    layers: int | None
    budget: int | None
    hidden_dim: int | None
    placement: str | None
    gate: str | None
    num_clusters: int | None
    sigma_m: float | None
    unsupervised_weight: float | None
    seeds: tuple[int, ...]
    folds: tuple[int, ...] | None
    departures: tuple[tuple[str, str], ...] = ()
    semantics: str | None = None
    pos_enc_dim: int | None = None
    other_settings: tuple[tuple[str, str], ...] | None = None
    searched: tuple[str, ...] = ()

    @property
    def asked(self) -> tuple[tuple[int, int | None], ...]:
        """Every (seed, fold) that the study asks for, in order."""
        return tuple((seed, fold) for seed in self.seeds for fold in (self.folds or (None,)))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A study's name, the text for its caption, and its cells in the order of the table."""

    study: str
    caption: str | None
    cells: tuple[PlanCell, ...]


_MEND = "run the study again to write it anew"
_BY_NAME = ("departures", "other_settings", "searched")
_PLAIN_TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float)}


def load_plan(results: Path) -> Plan:
    """The plan in the folder ``results``.

    Raises:
        ResultsError: the folder or its plan is missing, or the plan is not one of format 1.
    """
    try:
        require_study(results, PLAN_FILE)
    except (NoStudyError, StoreAccessError) as error:
        raise ResultsError(str(error)) from error
    path = results / PLAN_FILE
    try:
        return _plan(json.loads(path.read_text(encoding="utf-8")), path)
    except ResultsError as error:
        raise ResultsError(f"{error}; {_MEND}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise ResultsError(f"{path}: not readable as JSON ({error}); {_MEND}") from error


def _plan(content: Any, path: Path) -> Plan:
    found = content.get("format") if isinstance(content, dict) else None
    if found != PLAN_FORMAT:
        raise ResultsError(f"{path}: found plan format {found!r}, expected {PLAN_FORMAT}")
    cells = content.get("cells")
    if not isinstance(cells, list) or not cells:
        raise ResultsError(f"{path}: cells: found {cells!r}, expected a list of one or more cells")
    plan = Plan(
        study=_checked(content, "study", "str", str(path)),
        caption=_checked(content, "caption", "str | None", str(path)),
        cells=tuple(_cell(cell, f"{path}: cells[{place}]") for place, cell in enumerate(cells)),
    )
    doubled = [name for name, count in Counter(cell.id for cell in plan.cells).items() if count > 1]
    if doubled:
        raise ResultsError(f"{path}: the cell id {doubled[0]!r} stands twice, expected different ids")
    return plan


def _cell(content: object, where: str) -> PlanCell:
    if not isinstance(content, dict):
        raise ResultsError(f"{where}: found {content!r}, expected the keys of a cell")
    checked = {
        entry.name: _checked(content, entry.name, str(entry.type), where)
        for entry in fields(PlanCell)
        if entry.default is MISSING or (entry.name in content and entry.name not in _BY_NAME)
    }
    departures, others, searched = (_texts(content, name, where) for name in _BY_NAME)
    names = tuple(name for name, _ in searched or ())
    cell = PlanCell(**checked, departures=departures or (), other_settings=others, searched=names)
    for key, choices in (("metric", METRICS), ("direction", DIRECTIONS)):
        if getattr(cell, key) not in choices:
            raise ResultsError(f"{where}.{key}: found {getattr(cell, key)!r}, expected one of {', '.join(choices)}")
    if len(set(cell.asked)) != len(cell.asked) or not cell.asked:
        raise ResultsError(f"{where}: seeds {cell.seeds} on folds {cell.folds}, expected one or more, each once")
    return cell


def _texts(content: Mapping[str, Any], key: str, where: str) -> tuple[tuple[str, str], ...] | None:
    """The settings below ``key`` as text, by name; None without the key."""
    found = content.get(key)
    if found is None:
        return None
    if not isinstance(found, dict):
        raise ResultsError(f"{where}.{key}: found {found!r}, expected settings by name")
    return tuple((str(name), setting_text(value)) for name, value in sorted(found.items()))


def setting_text(value: object) -> str:
    """A departure or another setting as tables have it."""
    return "none" if value is None else str(value)


def _checked(content: Mapping[str, Any], key: str, annotation: str, where: str) -> Any:
    """``content[key]``, once it is known to be what the annotation of a field says."""
    kind, _, optional = annotation.partition(" | ")
    if key not in content:
        raise ResultsError(f"{where}.{key}: missing, expected {annotation}")
    value = content[key]
    if value is None and optional:
        return None
    if kind.startswith("tuple"):
        if isinstance(value, list) and all(_is_plain(item, "int") for item in value):
            return tuple(value)
    elif _is_plain(value, kind):
        return value
    raise ResultsError(f"{where}.{key}: found {value!r}, expected {annotation}")


def _is_plain(value: object, kind: str) -> bool:
    return isinstance(value, _PLAIN_TYPES[kind]) and not isinstance(value, bool)
