"""What of the paper holds when it is run again: docs/fidelity.md, made of records alone.

``aggregate.py fidelity`` reads the studies of a folder such as ``reports/reproduction``. Every number of the page, and
which of its sentences stand there, follows from the records and from the published rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from reports.compare.against_published import BesidePublished, beside_published
from reports.compare.against_vanilla import Comparison, compare_cells
from reports.compare.comparison_table import difference_text, p_value_text
from reports.compare.inference import SIGNIFICANCE
from reports.layout.result_table import Entry, build_table
from reports.published.rows import PaperRow, paper_rows
from reports.records.load import StudyResults, load_records, load_results
from reports.records.plan import PLAN_FILE, ResultsError
from reports.summary.summarise import CellSummary
from reports.words.parts import escape_markdown, markdown_part
from reports.words.prose import METRIC_NAMES
from reports.words.units import scale_of

DEFAULT_MEASURE = "information_gain_kde"
"""Of over-smoothing: the paper's."""

_GATE_COLUMNS = ("key", "cell", "epochs.list.element.gate_min", "epochs.list.element.gate_max")


@dataclass(frozen=True, kw_only=True)
class GateSpan:
    """Smallest and largest deg * beta_hat of a cell's edges, over all epochs of the runs behind its number."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """Largest distance from 1, which a uniform gate has everywhere."""
        return max(self.high - 1.0, 1.0 - self.low)


@dataclass(frozen=True, kw_only=True)
class Control:
    """A bilateral cell and its two baselines; a comparison is None where one side is not in the study.

    Attributes:
        gate_alone: bilateral - uniform: what only the gate does.
        whole: bilateral - vanilla. rest: uniform - vanilla: what everything but the gate does.
        others: vanilla models of the same backbone and depth with another setting, and bilateral - each of them.
    """

    bilateral: Entry
    uniform: Entry | None
    vanilla: Entry | None
    span: GateSpan | None
    gate_alone: Comparison[CellSummary] | None
    whole: Comparison[CellSummary] | None
    rest: Comparison[CellSummary] | None
    others: tuple[tuple[Entry, Comparison[CellSummary]], ...]


@dataclass(frozen=True, kw_only=True)
class KeptPicture:
    """A figure of over-smoothing that lies in the results folder: its PNG file, and the caption beside it."""

    name: str
    caption: str


@dataclass(frozen=True, kw_only=True)
class StudyFidelity:
    """One study of the folder: its rows beside the paper's, and its controls."""

    study: str
    folder: str
    caption: str
    rows: tuple[BesidePublished, ...]
    controls: tuple[Control, ...]
    pictures: tuple[KeptPicture, ...]

    def name(self, model: BesidePublished | Entry) -> str:
        """One of its models in Markdown, with the dataset and the number of layers where its rows differ in them."""
        depths = {row.summary.chosen.layers for row in self.rows}
        datasets = {row.summary.cell.dataset for row in self.rows}
        label = markdown_part(model.label)
        if len(depths) > 1:
            label = f"{label} L{model.summary.chosen.layers}"
        return f"{escape_markdown(model.summary.cell.dataset_title)}, {label}" if len(datasets) > 1 else label

    @property
    def metric(self) -> str:
        """What its rows are measured by, in the order of the rows where they differ in that."""
        return ", ".join(dict.fromkeys(METRIC_NAMES[row.summary.cell.metric] for row in self.rows))


def studies_in(folder: Path) -> tuple[Path, ...]:
    """The results folders that lie in ``folder``, by name.

    Raises:
        ResultsError: there is none.
    """
    found = tuple(path.parent for path in sorted(folder.glob(f"*/{PLAN_FILE}")))
    if not found:
        raise ResultsError(f"{folder}: found no results folder in it, expected some with a {PLAN_FILE}")
    return found


def write_fidelity(folder: Path, out: Path) -> Path:
    """Write the page of the studies in ``folder`` to the file ``out``.

    Raises:
        ResultsError: no studies, or one that cannot be read. study.records.RecordError: a record of another schema.
        OSError: ``out`` cannot be written.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(render_fidelity(fidelity(folder)), encoding="utf-8", newline="\n")
    return out


def fidelity(folder: Path) -> tuple[StudyFidelity, ...]:
    """Every study of ``folder``; Holm's correction of its controls is over all that are compared on the page.

    Raises:
        ResultsError, study.records.RecordError: as :func:`write_fidelity`.
    """
    paths = studies_in(folder)
    studies = [load_results(path) for path in paths]
    rows = [tuple(row for row in beside_published(results) if row.kind == "paper") for results in studies]
    # A study of another size is no reproduction: nothing of it stands beside the paper, but its figures do.
    controls = [
        list(_sides(results)) if any(map(by_protocol, beside)) else []
        for results, beside in zip(studies, rows, strict=True)
    ]
    compared = iter(compare_cells([pair for study in controls for sides in study for pair in _pairs(sides)]))
    return tuple(
        StudyFidelity(
            study=results.plan.study,
            folder=path.name,
            caption=results.plan.caption or results.plan.study,
            rows=beside if any(map(by_protocol, beside)) else (),
            controls=tuple(_control(sides, spans, compared) for sides in study),
            pictures=tuple(_pictures(path / "figures")),
        )
        for path, results, beside, study in zip(paths, studies, rows, controls, strict=True)
        for spans in [_spans(path, [bilateral.summary for bilateral, *_ in study])]
    )


def by_protocol(row: BesidePublished) -> bool:
    """Whether a cell is the published row's model, run as that was, up to the number of runs."""
    return row.counterpart and all(flag.setting in ("seeds", "folds") for flag in row.flags)


Sides = tuple[Entry, Entry | None, Entry | None, tuple[Entry, ...]]
"""Bilateral, uniform, the vanilla model that it faces, other vanilla models."""


def _sides(results: StudyResults) -> Iterator[Sides]:
    entries = build_table(results).entries
    by_id = {entry.summary.cell.id: entry for entry in entries}
    for entry in entries:
        if entry.summary.chosen.gate == "bilateral":
            twins = (other for other in entries if _is_twin(entry.summary, other.summary))
            others = (other for other in entries if other.summary.cell.id != entry.faces)
            yield (
                entry,
                next(twins, None),
                by_id.get(entry.faces or ""),
                tuple(other for other in others if _is_other_vanilla(entry.summary, other.summary)),
            )


def _is_other_vanilla(bilateral: CellSummary, other: CellSummary) -> bool:
    return (
        other.cell.placement == "none"
        and (other.cell.dataset, other.cell.backbone) == (bilateral.cell.dataset, bilateral.cell.backbone)
        and other.chosen.layers == bilateral.chosen.layers
        and other.cell.departures != bilateral.cell.departures
    )


def _is_twin(bilateral: CellSummary, other: CellSummary) -> bool:
    planned = ("dataset", "backbone", "semantics", "departures", "pos_enc_dim", "other_settings")
    same = ("layers", "hidden_dim", "placement", "num_clusters", "unsupervised_weight")
    return (
        other.chosen.gate == "uniform"
        and all(getattr(other.cell, key) == getattr(bilateral.cell, key) for key in planned)
        and all(getattr(other.chosen, key) == getattr(bilateral.chosen, key) for key in same)
    )


def _pairs(sides: Sides) -> list[tuple[CellSummary, CellSummary]]:
    bilateral, uniform, vanilla, others = sides
    pairs = ((bilateral, uniform), (bilateral, vanilla), (uniform, vanilla), *((bilateral, other) for other in others))
    return [(left.summary, right.summary) for left, right in pairs if left and right]


def _control(sides: Sides, spans: dict[str, GateSpan], compared: Iterator[Comparison[CellSummary]]) -> Control:
    """``compared`` are the tests of :func:`_pairs`, in its order."""
    bilateral, uniform, vanilla, others = sides
    return Control(
        bilateral=bilateral,
        uniform=uniform,
        vanilla=vanilla,
        span=spans.get(bilateral.summary.cell.id),
        gate_alone=next(compared) if uniform else None,
        whole=next(compared) if vanilla else None,
        rest=next(compared) if uniform and vanilla else None,
        others=tuple((other, next(compared)) for other in others),
    )


def _pictures(folder: Path) -> Iterator[KeptPicture]:
    for text in sorted(folder.glob(f"{DEFAULT_MEASURE}*.txt")):
        yield KeptPicture(name=f"{text.stem}.png", caption=text.read_text(encoding="utf-8"))


def _spans(path: Path, cells: Sequence[CellSummary]) -> dict[str, GateSpan]:
    counted = {run.key for cell in cells for run in cell.runs}
    spans: dict[str, GateSpan] = {}
    for row in load_records(path, _GATE_COLUMNS).to_pylist() if counted else ():
        if row["key"] not in counted:
            continue
        lows = [epoch["gate_min"] for epoch in row["epochs"] if epoch["gate_min"] is not None]
        highs = [epoch["gate_max"] for epoch in row["epochs"] if epoch["gate_max"] is not None]
        if lows and highs:
            before = spans.get(row["cell"], GateSpan(low=1.0, high=1.0))
            spans[row["cell"]] = GateSpan(low=min(before.low, *lows), high=max(before.high, *highs))
    return spans


def render_fidelity(studies: Sequence[StudyFidelity]) -> str:
    """The page as GitHub's Markdown."""
    environment = Environment(
        loader=PackageLoader("reports.fidelity"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {"number": _number, "difference": _difference, "p": _p_value, "told_p": _told_p}
    environment.filters |= {"words": escape_markdown, "span": _span}
    run_again = {row.published for study in studies for row in study.rows if by_protocol(row) and row.summary.complete}
    return environment.get_template("fidelity.md.jinja").render(
        studies=studies,
        significance=SIGNIFICANCE,
        rows_in_all=len(paper_rows()),
        rows_again=sum(row in run_again for row in paper_rows()),
        misprinted=sum(row.params_printed != row.params_true for row in paper_rows()),
        own=sum(row.origin == "own" for row in paper_rows()),
        is_row=lambda row: isinstance(row, PaperRow),
    )


def _number(value: float | None, metric: str, signed: bool = False) -> str:
    if value is None:
        return "—"
    shown = scale_of(metric) * value
    return f"{shown:+.3f}" if signed else f"{shown:.3f}"


def _difference(value: float | None, metric: str) -> str:
    return "—" if value is None else difference_text(value, metric)


def _p_value(value: float | None) -> str:
    return "—" if value is None else p_value_text(value)


def _told_p(value: float | None) -> str:
    shown = _p_value(value)
    return f"p {shown}" if shown.startswith("<") else f"p = {shown}"


def _span(span: GateSpan) -> str:
    """Both ends, with as many digits as tell them from 1."""
    digits = next((digits for digits in range(3, 10) if f"{span.width:.{digits}f}".strip("0.")), 10)
    return f"{span.low:.{digits}f} to {span.high:.{digits}f}"
