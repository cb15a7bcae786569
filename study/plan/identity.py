"""What of a cell decides the numbers of its trials, and where two versions of it differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bimp.config import TrialConfig
from study.configuration import configuration
from study.plan.cells import Cell, StudyPlan
from study.plan.planning import plan
from study.space import rate_corners, width_corners
from study.spec import StudySpec
from study.spec.domains import Domain
from study.spec.source import value_text

Run = tuple[int, int | None]
"""Seed and fold of a confirm trial."""

_RANGE = "space."
"""Begins the key of everything that is searched."""


@dataclass(frozen=True, kw_only=True)
class CellIdentity:
    """A cell as far as its trials depend on the study file.

    Attributes:
        id: of the cell.
        settings: what is the same in all its trials, as the file gives it.
        configurations: complete ones, among which every setting shows that a trial of the cell can have.
        search: how it is searched, by the keys of the file; empty where nothing is.
        trials: of its search, and confirm: its confirm trials. More of them change none that there are.
    """

    id: str
    settings: Mapping[str, str]
    configurations: tuple[TrialConfig, ...]
    search: Mapping[str, str]
    trials: int
    confirm: tuple[Run, ...]

    def differences(self, now: CellIdentity) -> list[str]:
        """What another version of the cell has that makes other trials, as ``key: was -> is``; amounts left out."""
        lines = changed(self.search, now.search)
        if not (self.search and now.search):
            # What to search says it all: how to search comes and goes with it.
            lines = [line for line in lines if line.startswith(_RANGE)]
        if self.search != now.search or self.configurations != now.configurations:
            # Else a setting was only written out that was so before, or left out that is so by itself.
            lines = changed(self.settings, now.settings) + lines
        return lines


def identities(spec: StudySpec, planned: StudyPlan | None = None) -> dict[str, CellIdentity]:
    """Every cell of the study by its id, in the plan's order; ``planned`` is its plan, where there is one already.

    Raises:
        SpecError: as :func:`study.plan.plan`.
    """
    return {cell.id: _identity(cell, spec) for cell in (planned or plan(spec)).cells}


def changed(was: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """A line ``key: was -> is`` for every key of which the two differ."""
    return [
        f"{key}: {was.get(key, 'nothing')} -> {now.get(key, 'nothing')}"
        for key in dict.fromkeys((*was, *now))
        if was.get(key) != now.get(key)
    ]


def _identity(cell: Cell, spec: StudySpec) -> CellIdentity:
    corners = width_corners(cell.space) + rate_corners(cell.space)
    return CellIdentity(
        id=cell.id,
        settings={key: _text(value) for key, value in cell.settings.items()},
        configurations=tuple(
            configuration({**cell.settings, **values}, seed=0, fold=cell.search_fold) for values in corners
        ),
        search=dict(_search(cell, spec)) if cell.trials else {},
        trials=cell.trials,
        confirm=cell.confirm_runs,
    )


def _search(cell: Cell, spec: StudySpec) -> Iterator[tuple[str, str]]:
    """The ranges, and what else decides which trials are made and pruned."""
    if spec.search is None:
        return
    for parameter in cell.space.parameters:
        yield f"{_RANGE}{parameter.key}", _domain(parameter.domain)
    # Samplers draw in the order of the keys.
    yield "space (order of keys)", _text([parameter.key for parameter in cell.space.parameters])
    yield "search.sampler", spec.search.sampler
    if spec.search.sampler != "grid":
        yield "seed", _text(spec.seed)
    yield "search.seed", _text(cell.search_seed)
    if cell.search_fold is not None:
        yield "search.fold", _text(cell.search_fold)
    if spec.search.asha is not None:
        yield "search.asha.grace_epochs", _text(spec.search.asha.grace_epochs)
        yield "search.asha.reduction_factor", _text(spec.search.asha.reduction_factor)


def _domain(domain: Domain) -> str:
    values = value_text(domain.bounds or domain.choices)
    conditions = ", ".join(f"{key}: {value_text(allowed)}" for key, allowed in sorted(domain.when.items()))
    return f"{domain.kind} {values}" + (f" when {conditions}" if conditions else "")


def _text(value: object) -> str:
    if value is None:
        return "null"
    return value if isinstance(value, str) else value_text(value)
