"""A plan as JSON, as the document that reports read, and in the terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from study.counted import counted
from study.plan.cells import Cell, StudyPlan
from study.plan.hours import Estimate, estimate_json
from study.space import between_corners
from study.spec.domains import Domain
from study.spec.source import value_text

PLAN_FORMAT = 1
"""Version of :func:`plan_document`."""


def plan_json(plan: StudyPlan, estimate: Estimate | None = None) -> list[dict[str, Any]]:
    """Every cell in full; what depends on the search is ``[least, greatest]``, ``params`` at the ends of its ranges.

    ``estimate``, if there is one, adds ``effort``: epochs and, where they are known, hours.
    """
    effort = {} if estimate is None else estimate_json(estimate)
    return [
        {
            **_settings(cell),
            "hidden_dim": cell.hidden_dim.plain,
            "params": cell.params.plain,
            **_search(cell),
            **_amounts(cell),
            "search_seed": cell.search_seed,
            "search_fold": cell.search_fold,
            **({"effort": effort[cell.id]} if effort else {}),
        }
        for cell in plan.cells
    ]


def plan_document(plan: StudyPlan) -> dict[str, Any]:
    """What a results folder keeps of the plan, for reports; values that are searched or do not exist are null."""
    return {
        "format": PLAN_FORMAT,
        "study": plan.name,
        "caption": plan.caption,
        "cells": [
            {**_settings(cell), "other_settings": cell.other_settings, **_search(cell), **_amounts(cell)}
            for cell in plan.cells
        ],
    }


def _search(cell: Cell) -> dict[str, Any]:
    searched = {parameter.key: _domain(parameter.domain) for parameter in cell.space.parameters}
    return {"searched": searched, "rungs": list(cell.rungs)}


def _amounts(cell: Cell) -> dict[str, int]:
    return {"trials": cell.trials, "confirm_trials": len(cell.confirm_runs), "max_epochs": cell.max_epochs}


def _settings(cell: Cell) -> dict[str, Any]:
    task = cell.task
    return {
        "id": cell.id,
        "dataset": task.dataset,
        "dataset_title": task.title,
        "metric": task.metric,
        "direction": task.direction,
        "backbone": cell.backbone,
        "layers": cell.setting("layers"),
        "budget": cell.setting("budget"),
        "hidden_dim": cell.setting("hidden_dim"),
        "placement": cell.placement,
        "gate": cell.setting("gate"),
        "num_clusters": cell.setting("num_clusters"),
        "sigma_m": cell.setting("sigma_m"),
        "unsupervised_weight": cell.setting("unsupervised_weight"),
        "pos_enc_dim": cell.setting("pos_enc_dim"),
        "semantics": cell.semantics,
        "departures": dict(cell.departures),
        "seeds": list(cell.seeds),
        "folds": None if cell.folds is None else list(cell.folds),
    }


def _domain(domain: Domain) -> dict[str, Any]:
    values = domain.bounds if domain.bounds is not None else domain.choices or ()
    result: dict[str, Any] = {domain.kind: _plain(values)}
    if domain.when:
        result["when"] = {key: _plain(allowed) for key, allowed in domain.when.items()}
    return result


def _plain(value: Any) -> Any:
    return [_plain(entry) for entry in value] if isinstance(value, tuple) else value


def render_plan(plan: StudyPlan) -> RenderableType:
    """A table of cells that fits 100 columns; below it what is searched and how long, once for cells that agree."""
    table = Table(title=Text(plan.name), title_justify="left", pad_edge=False, box=None, padding=(0, 1))
    table.add_column("Cell", overflow="fold")
    for heading in ("Width", "Params", "Search", "Confirm"):
        table.add_column(heading, justify="right")
    for cell in plan.cells:
        trials = counted(cell.trials, "trial") if cell.trials else "-"
        table.add_row(Text(cell.id), str(cell.hidden_dim), str(cell.params), trials, _confirm(cell))
    parts = ((len(plan.cells), "cell"), (plan.search_trials, "search trial"), (plan.confirm_trials, "confirm trial"))
    return Group(table, Text(), *_below(plan), Text(), Text(", ".join(counted(*part) for part in parts)))


def _confirm(cell: Cell) -> str:
    seeds = counted(len(cell.seeds), "seed")
    return seeds if cell.folds is None else f"{seeds} x {counted(len(cell.folds), 'fold')}"


def _below(plan: StudyPlan) -> list[Text]:
    cells_of: dict[str, int] = {}
    for cell in plan.cells:
        lines = [_semantics(cell)] if cell.semantics is not None else []
        lines += [f"search {parameter.key} in {_domain_text(parameter.domain)}" for parameter in cell.space.parameters]
        lines += _between_ends(cell)
        # At the rung of the last epoch there is nothing left to prune.
        rungs = " ".join(str(rung) for rung in cell.rungs if rung < cell.max_epochs)
        lines.append(f"train up to {counted(cell.max_epochs, 'epoch')}" + (f"; prune after {rungs}" if rungs else ""))
        for line in lines:
            cells_of[line] = cells_of.get(line, 0) + 1
    total = len(plan.cells)
    return [
        Text(f"{'every cell' if count == total else f'{count} of {total} cells'}: {line}")
        for line, count in cells_of.items()
    ]


def _between_ends(cell: Cell) -> list[str]:
    """Where the parameters of the table are not all that there can be."""
    ranges = between_corners(cell.space)
    searched = {parameter.key for parameter in cell.space.parameters}
    if not ranges or (cell.setting("budget") is None and "budget" not in searched):
        return []
    return [f"params are those at the ends of {' and '.join(ranges)}; between, up to the budget, others occur"]


def _semantics(cell: Cell) -> str:
    """Which preset, and what departs from it."""
    parts = ", ".join(f"{name} = {value_text(value)}" for name, value in cell.departures.items())
    return f"semantics {cell.semantics}" + (f", departing in {parts}" if parts else "")


def _domain_text(domain: Domain) -> str:
    values = ", ".join(map(value_text, domain.bounds or domain.choices or ()))
    conditions = " and ".join(
        f"{key} is {' or '.join(str(_plain(value)) for value in allowed)}" for key, allowed in domain.when.items()
    )
    return f"{domain.kind} [{values}]" + (f" where {conditions}" if conditions else "")
