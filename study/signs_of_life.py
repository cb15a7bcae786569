"""Whether a run that works on a study also gets on: what its driver shows, and what its trials put on record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from study.duration import duration
from study.presence import Presence

QUIET_EPOCHS = 20.0
QUIET_AT_LEAST_S = 300.0
"""A study is quiet when nothing came on record for as long as so many of its longest epochs, and so many seconds: a
trial's first epoch waits for a worker, for data that a node pulls, and for what a device compiles."""


@dataclass(frozen=True, kw_only=True)
class SignsOfLife:
    """When a study was last heard of; Unix seconds, by the clocks of the machines that wrote.

    Attributes:
        driver: when the run last showed that it lives; None: no run ever did, or the last one ended in order.
        trained: the last epoch or end of a trial on record; None: there is none.
        longest_epoch_s: of a trial under way an epoch, of ended ones their mean; None: there is none.
    """

    driver: float | None
    trained: float | None
    longest_epoch_s: float | None

    def last_ago(self, now: float) -> str | None:
        """How long ago the last sign of any kind was."""
        signs = [sign for sign in (self.driver, self.trained) if sign is not None]
        return _ago(max(signs), now) if signs else None

    def quiet_for(self, presence: Presence, now: float) -> float | None:
        """For how many seconds a run has brought nothing on record, where that is far longer than its epochs take."""
        if not presence.works or self.trained is None or self.longest_epoch_s is None:
            return None
        # A run that goes on after days has brought nothing yet.
        silent = now - max(self.trained, presence.since)
        return silent if silent > max(QUIET_EPOCHS * self.longest_epoch_s, QUIET_AT_LEAST_S) else None


def work_lines(presence: Presence, signs: SignsOfLife, now: float) -> Iterator[str]:
    """What there is to say of a run that works: who and since when nothing is heard of it, what it waits for.

    ``now``: Unix seconds.
    """
    who = f" ({presence.who})" if presence.who else ""
    driver = "" if signs.driver is None else f"; it showed that it lives {_ago(signs.driver, now)}"
    trained = "" if signs.trained is None else f"; the last epoch or end on record was {_ago(signs.trained, now)}"
    yield f"a run works on it now{who}{driver}{trained}"
    if presence.waits is not None:
        yield f"it waits: {presence.waits}"
    quiet = signs.quiet_for(presence, now)
    if quiet is not None and presence.waits is None:
        yield (
            f"nothing has come on record for {duration(quiet)}, and no epoch so far took longer than "
            f"{duration(signs.longest_epoch_s or 0.0)}: it may be stuck; the last lines of its log tell of lost nodes, "
            "trials that wait and a store that refuses"
        )


def _ago(then: float, now: float) -> str:
    # Clocks of two machines may differ.
    return f"{duration(max(0.0, now - then))} ago"
