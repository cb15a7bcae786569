"""A study with over-smoothing measured on three test graphs, by numbers chosen by hand."""

from __future__ import annotations

from pathlib import Path

from made_studies import gated, trial, vanilla, write_study

from study.records import TrialRecord
from study.smoothing_records import SmoothingRow, write_smoothing

GCN = vanilla("cluster", "gcn", 2, seeds=[41, 95])
BI_GCN = gated("cluster", "gcn", layers=2, seeds=[41, 95])
UNIFORM = gated("cluster", "gcn", layers=2, seeds=[41, 95], gate="uniform")
Values = dict[int, list[float]]
"""By graph number, the value behind each layer, the embedded inputs first."""


def measured(results: Path, record: TrialRecord, values: Values, ratio: float | None = None) -> None:
    rows = [
        SmoothingRow(
            key=record.key,
            cell=record.cell,
            seed=record.seed,
            fold=record.fold,
            layer=layer,
            graph=graph,
            information_gain_kde=value,
            information_gain_gaussian=2 * value,
            group_distance_ratio=ratio,
            dirichlet_energy=0.0,
            mean_average_distance=0.0,
        )
        for graph, by_layer in values.items()
        for layer, value in enumerate(by_layer)
    ]
    write_smoothing(rows, results / "smoothing" / f"{record.key}.parquet")


def measured_study(folder: Path) -> Path:
    """Three cells, of which the uniform one has lost the weights of its second seed."""
    cells = {"gcn": GCN, "bi": BI_GCN, "uniform": UNIFORM}
    trials = {(name, seed): trial(cell, seed, 0.5) for name, cell in cells.items() for seed in (41, 95)}
    results = write_study(folder, [GCN, BI_GCN, UNIFORM], trials.values())
    measured(results, trials["gcn", 41], {7: [9.0, 1.0, 0.1], 8: [9.0, 2.0, 0.2], 9: [9.0, 3.0, 0.3]})
    measured(results, trials["gcn", 95], {7: [9.0, 3.0, 0.1], 8: [9.0, 4.0, 0.2], 9: [9.0, 5.0, 0.3]})
    for seed in (41, 95):
        measured(results, trials["bi", seed], {7: [9.0, 12.0, 0.1], 8: [9.0, 13.0, 0.2], 9: [9.0, 14.0, 0.3]})
    measured(results, trials["uniform", 41], {7: [9.0, 2.0, 0.3], 8: [9.0, 3.0, 0.2], 9: [9.0, 4.0, 0.1]})
    return results
