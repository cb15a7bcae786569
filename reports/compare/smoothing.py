"""Over-smoothing by layer: of each cell its mean and spread over the test graphs, and how gated cells differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import ttest_ind

from reports.layout.result_table import Entry, build_table
from reports.records.load import load_results
from reports.records.plan import Plan, ResultsError
from reports.words.plain_text import plain
from study.smoothing_records import MEASURES, SMOOTHING_FOLDER, read_smoothing

ALPHA = 0.05
"""Level of all tests of one figure together."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """One cell's measure behind each layer.

    Attributes:
        cell, name: its id, and what the tables call it.
        gate: None for a vanilla network.
        seeds: of the measured trials, in order. folds: whether they were of different folds.
        asked: trials that the study asks for; ``trials`` those that were measured.
        values: ``[graphs, layers]``, each the mean over the trials that saw the graph as a test graph; NaN where the
            measure does not exist for a graph or is infinite.
    """

    cell: str
    name: str
    gate: str | None
    seeds: tuple[int, ...]
    folds: bool
    asked: int
    trials: int
    values: NDArray[np.float64]

    @property
    def graphs(self) -> int:
        """Number of test graphs."""
        return int(self.values.shape[0])

    @property
    def layers(self) -> int:
        """Number of layers; the embedded inputs are not among them."""
        return int(self.values.shape[1])

    @property
    def mean(self) -> NDArray[np.float64]:
        """``[layers]``, over the graphs; NaN behind a layer without any value."""
        return np.asarray(self._there.mean(axis=0).filled(np.nan))

    @property
    def std(self) -> NDArray[np.float64]:
        """``[layers]``, population standard deviation over the graphs."""
        return np.asarray(self._there.std(axis=0).filled(np.nan))

    @property
    def _there(self) -> np.ma.MaskedArray[tuple[int, ...], np.dtype[np.float64]]:
        # A layer may have no value at all, of which numpy's nanmean warns.
        return np.ma.masked_invalid(self.values)


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """What one figure shows: a vanilla cell and the gated cells that face it in the table; either may be missing.

    ``p_values`` has a row for each gated curve and a column for each layer: two-sided Welch t-tests over the graphs
    against the vanilla curve, multiplied by their number (Bonferroni), at most 1; None where there is no vanilla curve.
    ``about`` is what the study says of itself.
    """

    study: str
    about: str | None
    dataset: str
    measure: str
    vanilla: Curve | None
    gated: tuple[Curve, ...]
    p_values: NDArray[np.float64] | None

    @property
    def curves(self) -> tuple[Curve, ...]:
        """The vanilla curve, where there is one, and the gated ones."""
        return (*((self.vanilla,) if self.vanilla else ()), *self.gated)


def compare_smoothing(results: Path, measure: str) -> tuple[Comparison, ...]:
    """The comparisons of the study in ``results``, in the order of its table; none without a value of ``measure``.

    Each curve is of the runs behind the cell's number in that table.

    Raises:
        ResultsError: no such measure, or not the results folder of a study.
        study.records.RecordError: a file cannot be read.
    """
    if measure not in MEASURES:
        raise ResultsError(f"measure: found {measure!r}, expected one of {', '.join(MEASURES)}")
    study = load_results(results)
    table = build_table(study)
    groups: dict[str, dict[str, Curve]] = {}
    datasets: dict[str, str] = {}
    for entry in table.entries:
        cell = entry.summary.cell
        curve = _curve(
            entry, [results / SMOOTHING_FOLDER / f"{run.key}.parquet" for run in entry.summary.runs], measure
        )
        group = entry.faces or cell.id
        if curve is not None:
            groups.setdefault(group, {})[cell.id] = curve
            datasets[group] = cell.dataset_title
    return tuple(_comparison(study.plan, datasets[group], measure, curves) for group, curves in groups.items())


def _curve(entry: Entry, paths: Sequence[Path], measure: str) -> Curve | None:
    frames = [read_smoothing(path).to_pandas(use_threads=False) for path in paths if path.is_file()]
    if not frames:
        return None
    rows = pd.concat(frames, ignore_index=True)
    rows = rows[rows["layer"] > 0].assign(**{measure: rows[measure].replace([np.inf, -np.inf], np.nan)})
    values = rows.pivot_table(index="graph", columns="layer", values=measure, aggfunc="mean", dropna=True)
    if values.empty:
        return None
    # A graph without a value behind any layer, too, was measured.
    values = values.reindex(index=np.unique(rows["graph"]), columns=range(1, int(rows["layer"].max()) + 1))
    cell = entry.summary.cell
    return Curve(
        cell=cell.id,
        name=plain(entry.label),
        gate=entry.summary.chosen.gate,
        seeds=tuple(seed for seed in cell.seeds if (rows["seed"] == seed).any()),
        folds=cell.folds is not None,
        asked=entry.summary.asked,
        trials=len(frames),
        values=values.to_numpy(dtype=np.float64),
    )


def _comparison(plan: Plan, dataset: str, measure: str, curves: dict[str, Curve]) -> Comparison:
    vanilla = next((curve for curve in curves.values() if curve.gate is None), None)
    gated = tuple(curve for curve in curves.values() if curve.gate is not None)
    return Comparison(
        study=plan.study,
        about=plan.caption,
        dataset=dataset,
        measure=measure,
        vanilla=vanilla,
        gated=gated,
        p_values=_p_values(vanilla, gated) if vanilla and gated else None,
    )


def _p_values(vanilla: Curve, gated: Sequence[Curve]) -> NDArray[np.float64]:
    """Bonferroni-corrected; NaN where a layer has no two values to compare, or where nothing varies."""
    layers = max(curve.layers for curve in (vanilla, *gated))
    p_values = np.full((len(gated), layers), np.nan)
    for place, curve in enumerate(gated):
        for layer in range(min(curve.layers, vanilla.layers)):
            left, right = (values[~np.isnan(values)] for values in (curve.values[:, layer], vanilla.values[:, layer]))
            if min(left.size, right.size) > 1 and max(np.ptp(left), np.ptp(right)) > 0:
                p_values[place, layer] = ttest_ind(left, right, equal_var=False).pvalue
    tests = int(np.count_nonzero(~np.isnan(p_values)))
    return np.asarray(np.minimum(p_values * tests, 1.0))
