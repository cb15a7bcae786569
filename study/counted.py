"""A number of things as people say it."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """``1 trial``, ``2 trials``, ``1,200 trials``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
