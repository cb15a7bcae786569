"""Arms crossed into cells: combinations, what exists in them, and their names."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from study.space import Space, space_of_cell
from study.spec import StudySpec
from study.spec.hyperparameters import DEFAULTS, Value, exists
from study.spec.rows import Variant, variants
from study.spec.source import KeyPath

_NAMED_FIRST = ("dataset", "backbone", "placement", "layers", "budget", "hidden_dim")
_SYMBOLS = {
    "num_clusters": "K",
    "sigma_m": "sigma",
    "unsupervised_weight": "weight",
    "pos_enc_dim": "pe",
    "semantics": "",
}


@dataclass(frozen=True)
class Arms:
    """One combination of arms.

    Attributes:
        id: its name in the study.
        values: of the arms that exist in it.
        settings: these, the fixed values and the defaults of gate keys, as far as they exist and are not searched.
        space: what is searched in it.
        variant: the study as its row sees it.
    """

    id: str
    values: dict[str, Value]
    settings: dict[str, Value]
    space: Space
    variant: Variant


def cross(spec: StudySpec) -> list[Arms]:
    """Every combination of the arms, the last key changing fastest, row by row; combinations that become equal merge.

    A value that does not exist beside the others is dropped: ``gate: uniform`` makes no second vanilla cell.

    Raises:
        SpecError: cells of two rows differ, but not in their names.
    """
    cells: dict[str, Arms] = {}
    for variant in variants(spec):
        for combination in product(*variant.arms.values()):
            arms = _arms(variant, dict(zip(variant.arms, combination, strict=True)))
            other = cells.setdefault(arms.id, arms)
            if (other.settings, other.space.parameters) != (arms.settings, arms.space.parameters):
                path: KeyPath = () if variant.row is None else ("rows", variant.row)
                raise spec.source.error(path, f"found a second cell {arms.id}, expected cells whose names differ")
    return list(cells.values())


def _arms(variant: Variant, arms: dict[str, Value]) -> Arms:
    hopeful = _given(variant, arms, variant.space)
    # Where a condition on them does not hold, a placement has its default in all trials, and no gate key exists.
    searched = {parameter.key: parameter.domain for parameter in space_of_cell(hopeful, variant.space).parameters}
    given = _given(variant, arms, searched)
    values = {key: value for key, value in arms.items() if key in given}
    defaults = {key: value for key, value in DEFAULTS.items() if key not in searched and _exists(key, given, searched)}
    settings = {**defaults, **given}
    return Arms(cell_id(values, settings), values, settings, space_of_cell(given, searched), variant)


def _given(variant: Variant, arms: Mapping[str, Value], searched: Collection[str]) -> dict[str, Value]:
    """Fixed values and those of the arms, as far as they exist beside what is searched."""
    known = {**variant.fixed, **arms}
    return {key: value for key, value in known.items() if _exists(key, known, searched)}


def _exists(key: str, known: Mapping[str, Value], searched: Collection[str]) -> bool:
    # A placement or gate that is sampled may take a value that lets the other gate keys exist.
    sampled = {name: value for name, value in (("placement", "dense"), ("gate", "bilateral")) if name in searched}
    return exists(key, {**known, **sampled})


def cell_id(arms: dict[str, Value], settings: dict[str, Value]) -> str:
    """A name such as ``digits-gcn-boosting-L4-100k`` or ``zinc-gat-layers2.4-L16-500k-uniform-K8``.

    Args:
        arms: the cell's own values, which all enter the name.
        settings: these and the fixed ones, of which placement, depth and size enter it.
    """
    parts = [str(arms["dataset"]), re.sub("[.:]", "_", str(arms["backbone"]))]
    placement = settings.get("placement")
    if isinstance(placement, tuple):
        parts.append("layers" + ".".join(map(str, placement)))
    elif placement is not None:
        parts.append(str(placement))
    if "layers" in settings:
        parts.append(f"L{settings['layers']}")
    if "budget" in settings:
        parts.append(_count_text(settings["budget"]))
    if "hidden_dim" in settings:
        parts.append(f"h{settings['hidden_dim']}")
    parts += [_part(key, value) for key, value in arms.items() if key not in _NAMED_FIRST]
    return "-".join(part for part in parts if part)


def _count_text(count: Any) -> str:
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if count % size == 0:
            return f"{count // size}{letter}"
    return str(count)


def _part(key: str, value: Value) -> str:
    if key == "gate":
        return "uniform" if value == "uniform" else ""
    if isinstance(value, float):
        text = (repr(int(value)) if value.is_integer() and value < 1e15 else repr(value)).replace("+", "")
    elif isinstance(value, bool):
        text = "yes" if value else "no"
    else:
        text = "none" if value is None else str(value)
    return _SYMBOLS[key] + text if key in _SYMBOLS else f"{key}_{text}"
