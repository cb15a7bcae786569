"""Every pair of two lists of values as parameters of a test, of which CI runs a few."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest


def crossed(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    """All pairs; those that are not needed for every value to occur once are ``slow``."""
    rounds = range(max(len(first), len(second)))
    needed = [(first[turn % len(first)], second[turn % len(second)]) for turn in rounds]
    return [pytest.param(*pair, marks=() if pair in needed else pytest.mark.slow) for pair in product(first, second)]
