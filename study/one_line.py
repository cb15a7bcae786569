"""A message as one line of a terminal, whatever the names and texts in it."""

from __future__ import annotations


def one_line(text: str) -> str:
    """``text`` with every run of white space as a blank, and what cannot be printed as its escape."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in " ".join(text.split()))
