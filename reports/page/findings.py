"""What the check found, put together by kind, so that its effect and its remedy are told once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from reports.check import Finding

KEYS_SHOWN = 6
"""Trials that a finding names; the command ``check`` names all."""


@dataclass(frozen=True, kw_only=True)
class ShownFinding:
    """One finding: where, what, in which trials; ``evidence`` is the id of the cell's, if it is about one cell."""

    where: str
    found: str
    keys: tuple[str, ...]
    more: int
    evidence: str | None


@dataclass(frozen=True, kw_only=True)
class FindingsOfKind:
    """Findings that have the same effect on the table and are mended in the same way."""

    severity: str
    kind: str
    effect: str
    mend: str
    found: tuple[ShownFinding, ...]

    @property
    def forbids(self) -> bool:
        """Whether they forbid publishing the table as it is."""
        return self.severity == "forbids"

    @property
    def verdict(self) -> str:
        """The severity in words."""
        return "Forbids publishing" if self.forbids else "To be known"


def shown_findings(findings: Iterable[Finding], anchor: Callable[[str], str]) -> tuple[FindingsOfKind, ...]:
    """The findings by kind in the order in which the kinds occur; ``anchor`` gives the id of a cell's evidence."""
    kinds: dict[tuple[str, str, str, str], list[ShownFinding]] = {}
    for finding in findings:
        kind = (finding.severity, finding.kind, _sentence(finding.effect), _sentence(finding.mend))
        kinds.setdefault(kind, []).append(
            ShownFinding(
                where=finding.where,
                found=finding.found,
                keys=finding.keys[:KEYS_SHOWN],
                more=max(0, len(finding.keys) - KEYS_SHOWN),
                evidence=None if finding.cell is None else anchor(finding.cell),
            )
        )
    return tuple(
        FindingsOfKind(severity=severity, kind=kind, effect=effect, mend=mend, found=tuple(found))
        for (severity, kind, effect, mend), found in kinds.items()
    )


def _sentence(words: str) -> str:
    words = words.strip()
    return f"{words[:1].upper()}{words[1:]}{'' if words.endswith(('.', '!', '?')) else '.'}" if words else ""
