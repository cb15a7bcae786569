"""The plan as the mirror reads it, and the names by which people find its cells and trials in MLflow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from study.records import TrialRecord
from study.tracking.address import MirrorError
from study.typed_json import TypedJsonError, typed_json

PLAN_FORMAT = 1
_MEND = "run the study again, which writes it"

BACKBONE_TITLES = {"gcn": "GCN", "graphsage": "GraphSAGE", "gat": "GAT", "gated_gcn": "GatedGCN"}

_TELLING_APART = {
    "placement": "{}",
    "gate": "{}",
    "layers": "L={}",
    "num_clusters": "K={}",
    "sigma_m": "sigma_m={}",
    "unsupervised_weight": "weight={}",
}


@dataclass(frozen=True, kw_only=True)
class PlannedCell:
    """One cell of ``plan.json``; None stands for what is searched within the cell or does not apply.

    Attributes:
        semantics, pos_enc_dim, departures, other_settings: further settings, the same in all trials; plans of an older
            version lack some.
    """

    id: str
    dataset: str
    dataset_title: str
    metric: str
    backbone: str | None
    layers: int | None
    budget: int | None
    hidden_dim: int | None
    placement: str | list[int] | None
    gate: str | None
    num_clusters: int | None
    sigma_m: float | None
    unsupervised_weight: float | None
    seeds: list[int]
    folds: Any
    semantics: str | None = None
    pos_enc_dim: int | None = None
    departures: dict[str, Any] | None = None
    other_settings: dict[str, Any] | None = None

    @property
    def others(self) -> dict[str, str]:
        """The further settings as texts, by name."""
        given = {"semantics": self.semantics, "pos_enc_dim": self.pos_enc_dim}
        named = {name: value for name, value in given.items() if value is not None}
        found = {**named, **(self.departures or {}), **(self.other_settings or {})}
        return {name: value_text(value) or "none" for name, value in found.items()}


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """What the mirror needs of ``plan.json``."""

    study: str
    caption: str | None
    cells: tuple[PlannedCell, ...]


def read_plan(path: Path) -> StudyPlan:
    """The plan in ``path``; keys that the mirror does not know are passed over.

    Raises:
        MirrorError: missing, not JSON, of another format, or without a key that is needed.
    """
    try:
        content = path.read_bytes()
        found = typed_json(_Format, content).format
        if found != PLAN_FORMAT:
            raise MirrorError(f"{path}: found plan format {found}, expected {PLAN_FORMAT}; {_MEND}")
        return typed_json(StudyPlan, content)
    except (OSError, TypedJsonError) as error:
        raise MirrorError(f"{path}: not the plan of a study ({error}); {_MEND}") from error


@dataclass(frozen=True)
class _Format:
    format: int


def cell_names(cells: Iterable[PlannedCell]) -> dict[str, str]:
    """A name for people for each cell's id, e.g. ``bi-GCN Digits 100k``; no two are equal.

    Cells that would share a name are told apart by the settings in which they differ.
    """
    groups: dict[str, list[PlannedCell]] = {}
    for cell in cells:
        model = model_title(cell.backbone, cell.placement, cell.gate)
        groups.setdefault(f"{model} {cell.dataset_title}{_size_title(cell.budget, cell.hidden_dim)}", []).append(cell)
    names: dict[str, str] = {}
    taken: set[str] = set()
    for base, group in groups.items():
        forms = {
            key: form
            for key, form in _TELLING_APART.items()
            if len({value_text(getattr(cell, key)) for cell in group}) > 1
        }
        count = Counter(setting for cell in group for setting in cell.others.items())
        for cell in group:
            differing = [
                *(form.format(value_text(getattr(cell, key)) or "searched") for key, form in forms.items()),
                *(f"{key}={value}" for key, value in cell.others.items() if count[key, value] < len(group)),
            ]
            name = " ".join([base, *differing])
            names[cell.id] = name if name not in taken else f"{name} ({cell.id})"
            taken.add(names[cell.id])
    return names


def trial_name(record: TrialRecord, cell_name: str | None) -> str:
    """``bi-GCN Digits 100k seed 41`` for a confirm trial, ``bi-GCN Digits 100k search 7`` for a search trial."""
    if cell_name is None:
        model = model_title(record.backbone, record.placement, record.gate)
        cell_name = f"{model} {record.dataset_title}{_size_title(record.budget, record.hidden_dim)}"
    fold = "" if record.fold is None else f" fold {record.fold}"
    if record.phase == "search" and record.number is not None:
        return f"{cell_name} search {record.number}{fold}"
    return f"{cell_name} seed {record.seed}{fold}"


def model_title(backbone: str | None, placement: object, gate: str | None) -> str:
    """The model as the tables call it, e.g. ``GCN``, ``bi-GCN``, ``uniform-GCN``."""
    title = "MP" if backbone is None else BACKBONE_TITLES.get(backbone, backbone.rpartition(":")[2])
    if placement == "none":
        return title
    return f"uniform-{title}" if gate == "uniform" else f"bi-{title}"


def _size_title(budget: int | None, hidden_dim: int | None) -> str:
    if budget is not None:
        return f" {budget // 1000}k" if budget % 1000 == 0 else f" {budget}"
    return "" if hidden_dim is None else f" width {hidden_dim}"


def value_text(value: object) -> str:
    """``value`` as a parameter or tag shows it; empty for None."""
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return ",".join(str(item) for item in value)
    return str(value)
