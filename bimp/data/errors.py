"""The one error of the data layer."""

from __future__ import annotations


class DataError(ValueError):
    """Data that cannot be used: one line that says which file, what was found, what was expected, how to mend it."""
