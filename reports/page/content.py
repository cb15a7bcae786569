"""What the page shows, in the order of reading: its studies, what spans them, its contents and its banner."""

from __future__ import annotations

from dataclasses import dataclass, replace

from markupsafe import Markup

from reports.page.facts import PHASES, Facts
from reports.page.findings import FindingsOfKind
from reports.page.shown import ShownBlock, ShownEvidence, ShownNote, ShownPicture, ShownTable
from reports.page.sortable import SortableTable

BETWEEN = "between"
"""Id of the section on what differs between studies."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """A line of the page's contents; ``count``: how much there is to see."""

    anchor: str
    title: str
    count: int | None = None


@dataclass(frozen=True, kw_only=True)
class StudyPart:
    """One study's sections.

    ``prefix`` leads the ids of its sections, so that several studies share a page; ``several``: whether they do.
    """

    prefix: str
    several: bool
    name: str
    caption: str | None
    facts: Facts
    finished: int
    asked: int
    table_caption: Markup
    blocks: tuple[ShownBlock, ...]
    notes: tuple[ShownNote, ...]
    cells: SortableTable
    findings: tuple[FindingsOfKind, ...]
    pictures: tuple[ShownPicture, ...]
    plan: SortableTable
    evidence: tuple[ShownEvidence, ...]

    @property
    def anchor(self) -> str:
        """Id of the study's first section."""
        return f"{self.prefix}study"

    @property
    def sections(self) -> tuple[Section, ...]:
        """What there is to see of this study."""
        found = (
            Section(anchor="results", title="Results"),
            Section(anchor="cells", title="Cells", count=self.cells.num_rows),
            Section(anchor="check", title="Check", count=sum(len(kind.found) for kind in self.findings)),
            *((Section(anchor="pictures", title="Pictures", count=len(self.pictures)),) if self.pictures else ()),
            Section(anchor="plan", title="Plan and what was run"),
        )
        sections = tuple(replace(section, anchor=self.prefix + section.anchor) for section in found)
        return (Section(anchor=self.anchor, title=self.name), *sections) if self.several else sections

    @property
    def phases(self) -> tuple[str, ...]:
        """How the trials of each phase ended, in words."""
        counts = {
            phase: [(self.facts.count(phase, status), status) for status in self.facts.statuses] for phase in PHASES
        }
        return tuple(
            f"{phase}: " + ", ".join(f"{count} {status}" for count, status in ends if count)
            for phase, ends in counts.items()
            if any(count for count, _ in ends)
        )


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """A part of the banner: findings that forbid publishing, and the id of the section that has all; None: unnamed."""

    name: str | None
    section: str
    kinds: tuple[FindingsOfKind, ...]


@dataclass(frozen=True, kw_only=True)
class Page:
    """The whole page; ``published`` has a table for each study, ``between`` is what differs between studies."""

    studies: tuple[StudyPart, ...]
    between: tuple[FindingsOfKind, ...]
    comparisons: ShownTable
    published: tuple[ShownTable, ...]

    @property
    def title(self) -> str:
        """The names of the studies."""
        return ", ".join(study.name for study in self.studies)

    @property
    def contents(self) -> tuple[tuple[Section, ...], ...]:
        """A line for each study, and one for what spans them."""
        differing = sum(len(kind.found) for kind in self.between)
        beside = sum(shown.table.num_rows for shown in self.published)
        spanning = (
            *((Section(anchor=BETWEEN, title="Between studies", count=differing),) if self.between else ()),
            Section(anchor="comparisons", title="Comparisons", count=self.comparisons.table.num_rows),
            Section(anchor="published", title="Beside published numbers", count=beside),
            Section(anchor="evidence", title="Evidence"),
        )
        lines = [study.sections for study in self.studies]
        return (*lines, spanning) if len(lines) > 1 else ((*lines[0], *spanning),)

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The findings that forbid publishing, of every study that has any, then of all of them together."""
        found = (
            *(
                Alarm(name=study.name if study.several else None, section=f"{study.prefix}check", kinds=study.findings)
                for study in self.studies
            ),
            Alarm(name=None, section=BETWEEN, kinds=self.between),
        )
        forbidding = (replace(alarm, kinds=tuple(kind for kind in alarm.kinds if kind.forbids)) for alarm in found)
        return tuple(alarm for alarm in forbidding if alarm.kinds)
