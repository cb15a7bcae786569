"""A table as tidy CSV: one row a cell, raw numbers, what a later analysis reads."""

from __future__ import annotations

from reports.layout.result_table import Entry, ResultTable
from reports.words.plain_text import csv_text, plain, settings_text

_PLANNED = ("dataset", "dataset_title", "metric", "direction", "backbone")
_CHOSEN = (
    *("layers", "budget", "hidden_dim", "params", "placement", "gate"),
    *("num_clusters", "sigma_m", "unsupervised_weight"),
)


def render_csv(table: ResultTable) -> str:
    """One line a cell in the order of the table; metrics as unrounded fractions, unknown values empty.

    ``other_settings`` has what was searched too, once it is chosen. ``last_epoch`` is the mean 0-based index of the
    last epoch; ``mark`` is plain, better or best; ``faces`` is the vanilla cell it is compared with; ``gaps`` says
    which runs are missing and why.
    """
    rows = [_row(table.study, entry) for entry in table.entries]
    return csv_text(list(rows[0]), rows)


def _row(study: str, entry: Entry) -> dict[str, object]:
    summary = entry.summary
    gaps = [f"seed {gap.seed}{'' if gap.fold is None else f' fold {gap.fold}'} {gap.reason}" for gap in summary.gaps]
    return {
        "study": study,
        "cell": summary.cell.id,
        "model": plain(entry.label),
        **{key: getattr(summary.cell, key) for key in _PLANNED},
        **{key: getattr(summary.chosen, key) for key in _CHOSEN},
        "pos_enc_dim": summary.cell.pos_enc_dim,
        "semantics": summary.chosen.semantics,
        "departures": settings_text(summary.chosen.departures),
        "other_settings": settings_text(summary.chosen.other_settings),
        "n": summary.finished,
        "n_asked": summary.asked,
        "test_mean": summary.test.mean if summary.test else None,
        "test_std": summary.test.std if summary.test else None,
        "train_mean": summary.train.mean if summary.train else None,
        "train_std": summary.train.std if summary.train else None,
        "last_epoch": summary.last_epoch,
        "mark": entry.mark.value,
        "faces": entry.faces,
        "gaps": "; ".join(gaps),
    }
