"""The evidence of one cell as text: the same on a terminal and in a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from reports.evidence.cell_evidence import CellEvidence, TrialEvidence, evidence
from reports.evidence.chosen import RANKING_RULE, ChoiceEvidence
from reports.evidence.find_cell import find_cell, name_of
from reports.evidence.study_facts import run_text

MAX_SEARCH_TRIALS = 10
"""Search trials that are listed; the records hold them all."""


def explain(results: Path, words: str) -> str:
    """The evidence of the cell of the study in ``results`` that ``words`` name; see :func:`find_cell`.

    Raises:
        ResultsError, study.records.RecordError: as :func:`reports.evidence.cell_evidence.evidence` and
            :func:`find_cell`.
    """
    return render_evidence(find_cell(evidence(results), words))


def render_evidence(cell: CellEvidence) -> str:
    """Everything behind the cell's number, section by section, ending in a line break."""
    sections = (
        _heading(cell),
        _section("Runs behind the number", _runs([trial for trial in cell.trials if trial.counted])),
        _section("Other confirm trials on record, not in the number", _runs(_left_out(cell))),
        _section("Missing", cell.missing),
        _section("Configuration", _configuration(cell)),
        _section("How it was chosen", _choice(cell.chosen)),
        _section("Code", cell.code_states),
        _section("Data", cell.data),
        _section("Libraries", [" ".join(version) for version in cell.versions]),
        _section("Record files, in the results folder", dict.fromkeys(trial.record for trial in cell.trials)),
        _section(f"MLflow: experiment {_one_line(cell.study)}, filter of each run", _mlflow(cell.trials)),
    )
    text = "\n".join(section for section in sections if section)
    # A name read from JSON may hold half a surrogate pair, which no encoding has.
    return text.encode("utf-8", errors="replace").decode("utf-8")


def _heading(cell: CellEvidence) -> str:
    per_cent = "; in per cent, below as fractions" if cell.metric == "ACC" else ""
    runs = f"mean ± population standard deviation over {cell.finished} of {cell.asked} runs{per_cent}"
    return f"{_one_line(name_of(cell))}\ncell {_one_line(cell.cell)} of study {_one_line(cell.study)}\n\n" + _section(
        f"Test {cell.metric}: {cell.number}", [runs]
    )


def _section(title: str, lines: Iterable[str]) -> str:
    shown = [f"  {line}".rstrip() for line in lines]
    return "".join(f"{line}\n" for line in (title, *shown)) if shown else ""


def _left_out(cell: CellEvidence) -> list[TrialEvidence]:
    return [trial for trial in cell.trials if not trial.counted]


def _runs(trials: Sequence[TrialEvidence]) -> list[str]:
    rows = [
        (
            trial.key,
            run_text(trial.seed, trial.fold),
            _number(trial.test),
            _number(trial.train),
            _number(trial.val),
            str(trial.epochs),
            str(trial.params),
            _ended(trial.status, trial.reason),
        )
        for trial in trials
    ]
    return _aligned(("key", "run", "test", "train", "validation", "epochs", "params", "ended"), rows)


def _configuration(cell: CellEvidence) -> list[str]:
    if not cell.configuration:
        return []
    departures = ", ".join(f"{name} = {value}" for name, value in cell.departures)
    preset = f"semantics {cell.semantics}" + (f", departing in {departures}" if departures else ", no departure")
    width = max(len(name) for name, _ in cell.configuration)
    return [preset, *(f"{_one_line(name).ljust(width)}  {_one_line(value)}" for name, value in cell.configuration)]


def _choice(choice: ChoiceEvidence) -> list[str]:
    if choice.tried == 0:
        return [
            "nothing was searched: the plan fixes the configuration"
            if choice.key is None
            else f"from search trial {choice.key}, which is not on record"
        ]
    ends = ", ".join(f"{count} {status}" for status, count in choice.ends)
    lines = [f"{choice.tried} search trials: {ends}", f"ranked {RANKING_RULE}", _rank(choice)]
    lines += [f"searched {name}: {domain}" for name, domain in choice.searched]
    rows = [
        (
            "–" if trial.rank is None else str(trial.rank),  # noqa: RUF001
            trial.key,
            _number(trial.val),
            str(trial.epochs),
            _ended(trial.status, trial.reason),
        )
        for trial in choice.trials[:MAX_SEARCH_TRIALS]
    ]
    lines += _aligned(("rank", "key", "validation", "epochs", "ended"), rows)
    rest = len(choice.trials) - len(rows)
    return [*lines, f"and {rest} more"] if rest else lines


def _rank(choice: ChoiceEvidence) -> str:
    if choice.key is None:
        return "nothing chosen yet"
    if choice.rank is None:
        return f"chosen: trial {choice.key}, which is not among those that could be chosen"
    return f"chosen: trial {choice.key}, rank {choice.rank} of the {choice.ranked} that could be chosen"


def _mlflow(trials: Iterable[TrialEvidence]) -> list[str]:
    lines = [trial.mlflow_filter for trial in trials]
    pages = [trial.mlflow_page for trial in trials if trial.mlflow_page]
    if not pages:
        return lines
    # The same command again trains nothing and says it too.
    served = "or, where the database in the results folder is served (the last lines of `run_study.py run` tell how):"
    return [*lines, served, *pages]


def _aligned(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    widths = [max(len(row[place]) for row in (headings, *rows)) for place in range(len(headings))]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in (headings, *rows)]


def _ended(status: str, reason: str | None) -> str:
    return f"{status} ({_one_line(reason)})" if reason else status


def _number(value: float | None) -> str:
    return "–" if value is None else repr(value)  # noqa: RUF001


def _one_line(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
