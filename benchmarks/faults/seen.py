"""What a scenario gives back, and the words that scenarios share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.faults.scene import Running, Stage, study_text


@dataclass(frozen=True)
class Seen:
    """One fault: what was done to cause it, what was seen, line by line, and whether that is as it should be."""

    caused: str
    lines: tuple[str, ...]
    good: bool


def undisturbed(stage: Stage) -> Path:
    """The results of the same study when nothing happens to it; run once."""
    results = stage.folder / "undisturbed"
    if not (results / "tables").exists() and stage.run(study_text(), results).end():
        raise SystemExit("the undisturbed study failed")
    return results


def told(running: Running) -> tuple[str, ...]:
    """The lines that a study wrote about what happened."""
    return tuple(f"told: {line.rstrip()}" for line in running.err if line.strip())


def yes(good: bool) -> str:
    return "yes" if good else "no"


def same_in_words(same: bool) -> str:
    return f"numbers {'are' if same else 'are NOT'} those of an undisturbed run, to the bit"
