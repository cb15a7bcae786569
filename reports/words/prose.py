"""The words around a table: its caption and the notes below, as parts that each format renders in its own way."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from reports.records.plan import PlanCell
from reports.summary.labels import Detail, Label
from reports.summary.marks import FAIRNESS_RULE, Bold, Mark, rules, size_of
from reports.summary.summarise import CellSummary, Gap
from study.counted import counted

METRIC_NAMES = {"mae": "MAE", "accuracy": "ACC", "balanced_accuracy": "ACC", "f1": "F1"}
METRIC_MEANINGS = {
    "mae": "mean absolute error, lower is better",
    "accuracy": "accuracy in per cent",
    "balanced_accuracy": "mean of the recalls of the classes in per cent",
    "f1": "F1 score of the positive class",
}


@dataclass(frozen=True, kw_only=True)
class Marked:
    """Words set as a marked number is."""

    words: str
    mark: Mark


Part = str | Label | Detail | Marked
Text = tuple[Part, ...]


@dataclass(frozen=True, kw_only=True)
class Note:
    """A remark below the table: a sentence, or a heading with a list of items.

    Attributes:
        about: of items about one cell or dataset each, their ids, so that a table without it can leave the item out.
    """

    heading: str
    items: tuple[Text, ...] = ()
    about: tuple[str, ...] = ()

    def only(self, shown: Collection[str]) -> Note:
        """The items about what is ``shown``."""
        kept = [place for place, one in enumerate(self.about) if one in shown]
        return Note(
            heading=self.heading,
            items=tuple(self.items[place] for place in kept),
            about=tuple(self.about[place] for place in kept),
        )


ALL_COLUMNS = ("model", "layers", "params", "test", "train", "epochs")
"""Of a side of a table, by the names that a layout gives them."""


def caption(
    own: str | None,
    summaries: Sequence[CellSummary],
    bold: Bold = "paper",
    columns: Collection[str] = ALL_COLUMNS,
) -> Text:
    """The study's own words, then what the numbers are, over what they are averaged and what the marks mean.

    ``bold`` says by which rule. Nothing is said of what is not among ``columns``.
    """
    better, best = rules(bold, size_of(summaries))
    measured = f"{_metrics(summaries)}. Mean ± population standard deviation (ddof 0) over {_runs(summaries)}. "
    marked = (
        Marked(words="Bold", mark=Mark.BETTER),
        f": {better}. ",
        Marked(words="Red", mark=Mark.BEST),
        f": {best}. {FAIRNESS_RULE}.",
    )
    return (
        *((_sentence(own) + " ",) if own and own.strip() else ()),
        *((measured,) if {"test", "train"} & set(columns) else ()),
        *meanings_of(columns),
        *(marked if "test" in columns else ()),
    )


def meanings_of(columns: Collection[str]) -> Text:
    """What the abbreviated heads among ``columns`` stand for."""
    meanings = (("layers", "L: number of layers. "), ("params", "Params: number of parameters. "))
    words = "".join(meaning for column, meaning in meanings if column in columns)
    return (words,) if words else ()


def notes(
    labelled: Sequence[tuple[CellSummary, Label]], outside_plan: int, columns: Collection[str] = ALL_COLUMNS
) -> tuple[Note, ...]:
    """What a reader must know beside the numbers of ``columns``.

    ``outside_plan`` counts confirm trials that no cell owns.
    """
    lists = [
        Note(heading="Incomplete:", items=tuple(_missing(*pair) for pair in labelled if not pair[0].complete)),
        Note(
            heading="On record, but of another configuration, other data, seeds or folds than what counts (left out):",
            items=tuple(_set_aside(*pair) for pair in labelled if pair[0].set_aside),
        ),
    ]
    if outside_plan:
        lists.append(
            Note(
                heading="Left out:",
                items=((f"{counted(outside_plan, 'confirm trial')} of cells that are not in the plan",),),
            )
        )
    return (
        *_values_in_names(labelled),
        *((_EPOCHS,) if "epochs" in columns else ()),
        *(note for note in lists if note.items),
    )


_EPOCHS = Note(heading="Epochs: mean 0-based index of the last epoch, as in the paper (completed epochs - 1).")


def _values_in_names(labelled: Sequence[tuple[CellSummary, Label]]) -> tuple[Note, ...]:
    if not any(summary.searched for summary, _ in labelled):
        return ()
    return (
        Note(heading="Where a setting was searched, the value in the model's name was chosen on the validation split."),
    )


def _sentence(words: str) -> str:
    words = " ".join(words.split())
    return words if words[-1] in ".!?" else f"{words}."


def _metrics(summaries: Sequence[CellSummary]) -> str:
    titles: dict[str, dict[str, None]] = {}
    for summary in summaries:
        titles.setdefault(summary.cell.metric, {})[summary.cell.dataset_title] = None
    named = [
        f"{METRIC_NAMES[metric]} ({', '.join(datasets)}): {METRIC_MEANINGS[metric]}"
        for metric, datasets in titles.items()
    ]
    return "; ".join(named)


def _runs(summaries: Sequence[CellSummary]) -> str:
    titles: dict[str, dict[str, None]] = {}
    for summary in summaries:
        titles.setdefault(_design(summary.cell), {})[summary.cell.dataset_title] = None
    if len(titles) == 1:
        return next(iter(titles))
    return ", ".join(f"{design} ({', '.join(datasets)})" for design, datasets in titles.items())


def _design(cell: PlanCell) -> str:
    seeds = counted(len(cell.seeds), "seed")
    if cell.folds is None:
        return seeds
    folds = counted(len(cell.folds), "fold")
    return folds if len(cell.seeds) == 1 else f"{seeds} on each of {folds}"


def _model(summary: CellSummary, label: Label) -> Text:
    where = [f"{key} {value}" for key, value in _place(summary) if value is not None]
    return (f"{summary.cell.dataset_title}, ", label, "".join(f", {words}" for words in where))


def _place(summary: CellSummary) -> Iterable[tuple[str, int | None]]:
    return (("L", summary.chosen.layers), ("budget", summary.chosen.budget))


def _missing(summary: CellSummary, label: Label) -> Text:
    reasons: dict[str, list[Gap]] = {}
    for gap in summary.gaps:
        reasons.setdefault(gap.reason, []).append(gap)
    why = "; ".join(f"{_runs_of(gaps)} {reason}" for reason, gaps in reasons.items())
    return (*_model(summary, label), f": {summary.finished} of {summary.asked} runs; {why}")


def _runs_of(gaps: Sequence[Gap]) -> str:
    folds: dict[int, list[str]] = {}
    for gap in gaps:
        folds.setdefault(gap.seed, []).extend([] if gap.fold is None else [str(gap.fold)])
    if not any(folds.values()):
        return f"seed{'s' * (len(folds) > 1)} {', '.join(map(str, folds))}"
    return " and ".join(
        f"seed {seed} fold{'s' * (len(numbers) > 1)} {', '.join(numbers)}" for seed, numbers in folds.items()
    )


def _set_aside(summary: CellSummary, label: Label) -> Text:
    return (*_model(summary, label), f": {counted(summary.set_aside, 'confirm trial')}")
