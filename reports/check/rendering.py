"""Findings for people: a table on a terminal, one line a finding elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from reports.check.finding import Finding
from study.counted import counted

MAX_KEYS = 4
"""Trials that a finding names; its ``keys`` are all of them."""


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """One a finding: ``forbids KIND: STUDY: CELL: what was found; what it may do; how to mend it [trials: ...]``."""
    return [
        _one_line(
            f"{finding.severity} {finding.kind}: {finding.study}: {_where(finding)}{finding.found}; {finding.effect}; "
            f"to mend: {finding.mend}{_trials(finding, ' [trials: ', ']')}"
        )
        for finding in findings
    ]


def finding_table(findings: Sequence[Finding]) -> RenderableType:
    """The same, as a table for ``rich``."""
    table = Table(show_lines=True)
    for heading in ("Finding", "Where", "What, and what it may do", "How to mend it"):
        table.add_column(heading, overflow="fold")
    for finding in findings:
        style = "bold red" if finding.severity == "forbids" else "yellow"
        what = Text(_one_line(f"{finding.found}{_trials(finding, ' [trials: ', ']')}."))
        what.append(f"\n{finding.effect[:1].upper()}{finding.effect[1:]}.", style="italic")
        where = finding.study if finding.where == finding.study else f"{finding.study}: {finding.where}"
        table.add_row(
            Text(f"{finding.severity}\n{finding.kind}", style=style), Text(_one_line(where)), what, Text(finding.mend)
        )
    return table


def summary_line(findings: Sequence[Finding], studies: int) -> str:
    """How many findings there are, and what follows."""
    forbidding = sum(finding.severity == "forbids" for finding in findings)
    of = f"in {'1 study' if studies == 1 else f'{studies} studies'}"
    if not findings:
        return f"nothing found {of}"
    verdict = "do not publish yet" if forbidding else "say in the text what the warnings name"
    counts = f"{counted(forbidding, 'finding')} that {'forbids' if forbidding == 1 else 'forbid'} publishing"
    return f"{counts}, {counted(len(findings) - forbidding, 'warning')} {of}: {verdict}"


def _where(finding: Finding) -> str:
    return "" if finding.where == finding.study else f"{finding.where}: "


def _trials(finding: Finding, before: str, after: str) -> str:
    if not finding.keys:
        return ""
    more = f" and {len(finding.keys) - MAX_KEYS} more" if len(finding.keys) > MAX_KEYS else ""
    return f"{before}{', '.join(finding.keys[:MAX_KEYS])}{more}{after}"


def _one_line(text: str) -> str:
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(printable.split())
