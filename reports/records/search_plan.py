"""What the plan says of a cell's search: its ranges, the epochs at which it prunes, and how many trials."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reports.records.plan import PLAN_FILE, ResultsError

RANGES = ("uniform", "log_uniform", "int", "log_int")
CHOICE = "choice"


@dataclass(frozen=True, kw_only=True)
class SearchedRange:
    """What one hyperparameter is sampled from.

    Attributes:
        name: of the hyperparameter.
        kind: one of :data:`RANGES`, or ``choice``.
        values: the least and the greatest value of a range, both included; all values of a choice, in their order.
        when: values of other hyperparameters, of which each must have one of its own for this one to be sampled.
    """

    name: str
    kind: str
    values: tuple[Any, ...]
    when: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def place(self, value: Any) -> float | None:
        """Where ``value`` lies between the least (0) and the greatest value (1), by logarithms where sampled so.

        None where there is no order or nothing between the ends: words, two values, another kind of value.
        """
        if not _is_number(value) or not all(_is_number(end) for end in self.values):
            return None
        if self.kind == CHOICE:
            ordered = sorted(self.values)
            return ordered.index(value) / (len(ordered) - 1) if len(ordered) > 2 and value in ordered else None
        low, high = self.values
        if self.kind in ("int", "log_int") and high - low < 2:
            return None
        if self.kind.startswith("log"):
            low, high, value = math.log(low), math.log(high), math.log(value) if value > 0 else -math.inf
        return float((value - low) / (high - low))

    def __str__(self) -> str:
        return f"{self.kind} [{', '.join(map(str, self.values))}]"


@dataclass(frozen=True, kw_only=True)
class SearchPlan:
    """A cell's search; of a plan that an older version wrote, what it holds.

    Attributes:
        trials: how many the study asks for; None where the plan does not say.
        ranges: what is searched; None where the plan does not say.
        rungs: epochs after which trials are compared and pruned, ascending; empty without pruning, or not said.
    """

    trials: int | None
    ranges: tuple[SearchedRange, ...] | None
    rungs: tuple[int, ...]

    def sampled(self, settings: Mapping[str, Any]) -> tuple[SearchedRange, ...]:
        """What was sampled in the trial with these columns; whose conditions did not hold there had its default."""
        found: dict[str, SearchedRange] = {}
        searched = {entry.name for entry in self.ranges or ()}
        for entry in self.ranges or ():
            # A condition stands on what is sampled before; one on what the cell fixes holds, or nothing were searched.
            conditions = [(name, allowed) for name, allowed in entry.when.items() if name in searched]
            holds = all(name in found and settings[name] in allowed for name, allowed in conditions)
            if holds and settings.get(entry.name) is not None:
                found[entry.name] = entry
        return tuple(found.values())


def load_search_plans(results: Path) -> dict[str, SearchPlan]:
    """The search of every cell, by its id, of a folder whose plan :func:`reports.records.plan.load_plan` can read.

    Raises:
        ResultsError: a range, a rung or a number of trials is not what a study writes.
    """
    path = results / PLAN_FILE
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return {cell["id"]: _search_plan(cell, f"{path}: cells[{place}]") for place, cell in enumerate(cells)}


def _search_plan(cell: Mapping[str, Any], where: str) -> SearchPlan:
    trials, rungs, searched = cell.get("trials"), cell.get("rungs", []), cell.get("searched")
    if trials is not None and not _is_whole(trials):
        raise ResultsError(f"{where}.trials: found {trials!r}, expected a whole number")
    if not isinstance(rungs, list) or not all(_is_whole(rung) for rung in rungs):
        raise ResultsError(f"{where}.rungs: found {rungs!r}, expected epochs")
    if searched is not None and not isinstance(searched, dict):
        raise ResultsError(f"{where}.searched: found {searched!r}, expected ranges by name")
    ranges = None if searched is None else tuple(_range(name, domain, where) for name, domain in searched.items())
    return SearchPlan(trials=trials, ranges=ranges, rungs=tuple(sorted(rungs)))


def _range(name: str, domain: object, where: str) -> SearchedRange:
    kinds = [kind for kind in (*RANGES, CHOICE) if isinstance(domain, dict) and kind in domain]
    values = domain[kinds[0]] if isinstance(domain, dict) and len(kinds) == 1 else None
    if not isinstance(values, list) or (kinds[0] != CHOICE and not _is_ascending(values, kinds[0])):
        raise ResultsError(f"{where}.searched.{name}: found {domain!r}, expected one range or choice")
    when = domain.get("when", {}) if isinstance(domain, dict) else {}
    if not isinstance(when, dict) or not all(isinstance(allowed, list) for allowed in when.values()):
        raise ResultsError(f"{where}.searched.{name}.when: found {when!r}, expected lists of values by name")
    conditions = {other: tuple(map(_as_recorded, allowed)) for other, allowed in when.items()}
    return SearchedRange(name=name, kind=kinds[0], values=tuple(values), when=conditions)


def _as_recorded(value: Any) -> Any:
    """A placement of single layers is text in a record."""
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _is_ascending(values: list[Any], kind: str) -> bool:
    if len(values) != 2 or not all(_is_number(value) for value in values):
        return False
    return bool(values[0] < values[1]) and (not kind.startswith("log") or values[0] > 0)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
