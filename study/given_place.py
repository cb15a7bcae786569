"""A path or URL as somebody typed it on the command line: refused in one line where it cannot be meant."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from study.location import LocationError, is_remote, location

LONGEST_PATH = 900
"""Bytes that a path or URL may have: an object's name has 1,024 at most, and a study adds its own files' names."""

LONGEST_NAME = 255
"""Bytes that the name of one file or folder may have, on every usual disk."""


class GivenPlaceError(Exception):
    """A path or URL that names no place: the option, what was found, what was expected.

    No ValueError: the command line's parser would make a page of help of it.
    """


def place_or_url(option: str, expected: str = "a folder or its URL") -> Callable[[str | Path], Path]:
    """A parser of what ``option`` (or an argument) gives: a folder or a file, or the URL of one in an object store."""

    def parse(given: str | Path) -> Path:
        text = _checked(str(given), option, expected)
        try:
            place = location(_at_home(text))
        except LocationError as error:
            raise GivenPlaceError(f"{option}: {error}") from error
        if text.lower().startswith("memory:"):
            raise GivenPlaceError(f"{option}: {text}: found a place in this program's memory, expected {expected}")
        return place

    return parse


def local_path(option: str) -> Callable[[str | Path], Path]:
    """A parser of what ``option`` gives: a path of this machine, or one that it mounts."""
    parse_any = place_or_url(option, "a path")

    def parse(given: str | Path) -> Path:
        place = parse_any(given)
        if is_remote(place):
            raise GivenPlaceError(f"{option}: {given}: found a URL, expected a path on this machine")
        return place

    return parse


def given_text(option: str, expected: str) -> Callable[[str], str]:
    """A parser of what ``option`` gives where that may not be empty; ``expected`` says what it should be."""

    def parse(given: str) -> str:
        return _checked(given, option, expected)

    return parse


def _at_home(text: str) -> str:
    """``text`` with the home folder in the place of ``~``, which shells leave as it is behind ``--option=``."""
    return str(Path(text).expanduser()) if text == "~" or text.startswith("~/") else text


def _checked(text: str, option: str, expected: str) -> str:
    """``text``, if it can name anything. No refusal repeats it: it may hold a password."""
    if not text.strip():
        raise GivenPlaceError(f"{option}: found nothing, expected {expected} (is a variable of your shell not set?)")
    odd = next((character for character in text if not character.isprintable()), None)
    if odd is not None:
        raise GivenPlaceError(f"{option}: found a character that cannot be printed ({odd!r}), expected {expected}")
    size, longest = len(os.fsencode(text)), max(len(os.fsencode(name)) for name in text.split("/"))
    if size > LONGEST_PATH:
        raise GivenPlaceError(f"{option}: found {size:,} bytes, expected {LONGEST_PATH} at most")
    if longest > LONGEST_NAME:
        raise GivenPlaceError(
            f"{option}: found a file's or folder's name of {longest} bytes, expected {LONGEST_NAME} at most"
        )
    return text
