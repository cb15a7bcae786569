"""From results folders to the page of their studies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.check import Finding, findings_of
from reports.compare.against_published import beside_published
from reports.compare.comparison_table import compare_tables
from reports.evidence.cell_evidence import evidence_of
from reports.evidence.study_facts import StudyFacts, gather
from reports.layout.result_table import ResultTable
from reports.page.cells import plan_rows, result_rows
from reports.page.content import Page, StudyPart
from reports.page.facts import facts_of
from reports.page.findings import shown_findings
from reports.page.grids import shown_comparisons, shown_published
from reports.page.markup import written
from reports.page.pictures import Draw, every_picture, shown_pictures
from reports.page.render import render_page
from reports.page.shown import anchor_of_cell, shown_block, shown_evidence, shown_notes
from reports.records.load import StudyResults, given_once
from reports.records.search_plan import load_search_plans
from reports.words.prose import caption

PAGE_FILE = "page.html"


def write_page(folders: Sequence[Path], out: Path | None = None, draw: Draw = every_picture) -> Path:
    """Write the page of the studies in ``folders``; into the first of them, where ``out`` names no file.

    ``draw`` gives the pictures of a folder. The same records and pictures give the same bytes.

    Raises:
        ResultsError: one of ``folders`` is not the results folder of a study.
        study.records.RecordError: a record is cut, foreign, or of another schema version.
        OSError: the file cannot be written.
    """
    path = folders[0] / PAGE_FILE if out is None else out
    content = render_page(build_page(folders, draw))
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name read from JSON may hold half a surrogate pair, which no encoding has.
    path.write_text(content, encoding="utf-8", errors="replace", newline="\n")
    return path


def build_page(folders: Sequence[Path], draw: Draw = every_picture) -> Page:
    """What the page shows of the studies in ``folders``, with the pictures that ``draw`` gives of each.

    Raises:
        ResultsError, study.records.RecordError: as :func:`write_page`.
    """
    given_once(folders)
    several = len(folders) > 1
    studies = tuple(_Study.read(folder, f"s{place}-" if place > 1 else "") for place, folder in enumerate(folders, 1))
    facing = [study.anchor for study in studies for entry in study.table.entries if entry.faces is not None]
    return Page(
        studies=tuple(_study_part(study, several, draw) for study in studies),
        between=shown_findings(_findings_between([study.facts for study in studies]), studies[0].anchor),
        comparisons=shown_comparisons(compare_tables([study.table for study in studies]), facing),
        published=tuple(shown_published(beside_published(study.results), study.anchor) for study in studies),
    )


def _findings_between(studies: Sequence[StudyFacts]) -> Iterator[Finding]:
    """What the check finds of several studies that it finds of none alone."""
    if len(studies) > 1:
        alone = {finding for study in studies for finding in findings_of([study])}
        yield from (finding for finding in findings_of(studies) if finding not in alone)


@dataclass(frozen=True, kw_only=True)
class _Study:
    folder: Path
    prefix: str
    facts: StudyFacts

    @classmethod
    def read(cls, folder: Path, prefix: str) -> _Study:
        return cls(folder=folder, prefix=prefix, facts=gather(folder))

    @property
    def results(self) -> StudyResults:
        return self.facts.results

    @property
    def table(self) -> ResultTable:
        return self.facts.table

    def anchor(self, cell: str) -> str:
        return anchor_of_cell(self.prefix, cell)


def _study_part(study: _Study, several: bool, draw: Draw) -> StudyPart:
    plan, entries = study.results.plan, study.table.entries
    summaries = [entry.summary for entry in entries]
    facts = facts_of(study.facts.details.table)
    metrics = {cell.id: cell.metric for cell in plan.cells}
    return StudyPart(
        prefix=study.prefix,
        several=several,
        name=plan.study,
        caption=plan.caption,
        facts=facts,
        finished=sum(summary.finished for summary in summaries),
        asked=sum(summary.asked for summary in summaries),
        table_caption=written(caption(None, summaries)),
        blocks=tuple(shown_block(block, study.prefix) for block in study.table.blocks),
        notes=shown_notes(study.table.notes),
        cells=result_rows(entries, study.anchor),
        findings=shown_findings(findings_of([study.facts]), study.anchor),
        pictures=shown_pictures(draw(study.folder), study.prefix),
        plan=plan_rows(entries, facts, load_search_plans(study.folder), study.anchor),
        evidence=tuple(
            shown_evidence(cell, metrics[cell.cell], study.anchor(cell.cell))
            for cell in evidence_of(study.facts, study.folder)
        ),
    )
