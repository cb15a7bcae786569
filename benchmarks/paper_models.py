"""The paper's models as studies of search_spaces/ hold them, each beside the row of the paper that it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bimp.config import TrialConfig
from bimp.tasks import task_of
from reports.published.rows import PaperRow, paper_rows
from study.plan import plan
from study.plan.heaviest import heaviest
from study.spec import load_study

STUDIES = Path(__file__).parent.parent / "search_spaces"

Row = tuple[str, str, str, int, int]
"""Dataset as in a study file, backbone, placement, layers, hidden_dim: what tells the paper's rows apart."""


@dataclass(frozen=True, kw_only=True)
class PaperModel:
    """One of the paper's models.

    Attributes:
        row: of the paper's tables; of two that print the same model the first.
        config: its training, of the first seed or fold.
        runs: seeds or folds.
    """

    row: PaperRow
    config: TrialConfig
    runs: int

    @property
    def epochs(self) -> float:
        """Epochs of a run as printed, which counts them from 0."""
        return self.row.epochs + 1


def paper_models() -> tuple[PaperModel, ...]:
    """All of them, study by study.

    Raises:
        KeyError: a study holds a row that the paper has not.
    """
    printed: dict[Row, PaperRow] = {}
    for row in paper_rows():
        printed.setdefault((row.dataset, row.backbone, row.placement, row.layers, row.hidden_dim), row)
    models: dict[Row, PaperModel] = {}
    for path in sorted(STUDIES.glob("paper_*.yaml")):
        spec = load_study(path)
        for cell in plan(spec).cells:
            config = heaviest(cell, spec)
            title, model = task_of(config.dataset).title, config.model
            key = (title, model.backbone, str(model.placement), model.layers, model.hidden_dim)
            models.setdefault(key, PaperModel(row=printed[key], config=config, runs=len(cell.confirm_runs)))
    return tuple(models.values())
