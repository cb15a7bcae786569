"""Whether a run works in a results folder at this moment."""

from __future__ import annotations

from dataclasses import dataclass

from study.lease_holder import last_holder
from study.results import ResultsFolder


@dataclass(frozen=True)
class Presence:
    """A run, or that there is none.

    Attributes:
        works: whether one works in the folder now.
        who: the machine and process of the one that does, or that went away without a word.
        last_sign: Unix seconds, by its clock, of its last sign of life beside the records.
        since: Unix seconds, by its clock, since when it works.
        waits: why it can begin no trial, or which one not, as it says itself; None where it can begin all.
    """

    works: bool
    who: str | None = None
    last_sign: float | None = None
    since: float = 0.0
    waits: str | None = None


def who_works_here(folder: ResultsFolder) -> Presence:
    """Who holds the folder's lease, or held it and did not give it back."""
    holder = last_holder(folder)
    if holder is None or holder.ended:
        return Presence(works=False)
    return Presence(
        works=holder.works,
        who=f"process {holder.pid} of {holder.host}",
        last_sign=holder.seen,
        since=holder.process_started,
        waits=holder.waits if holder.works else None,
    )
