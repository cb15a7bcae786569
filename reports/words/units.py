"""The units in which metrics are printed."""

from __future__ import annotations

PER_CENT = ("accuracy", "balanced_accuracy")
"""Metrics that are fractions on record and per cent in print."""


def scale_of(metric: str) -> float:
    """What a value of ``metric``, as it is on record, is multiplied by in print."""
    return 100.0 if metric in PER_CENT else 1.0
