"""A length of time as people say it."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """So long, in the unit that fits."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"
