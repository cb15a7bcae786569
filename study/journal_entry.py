"""A line of a study's journal, written and read; it is read as strictly as a record is."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, ConfigDict, Field

from study.record_files import KEY
from study.typed_json import TypedJsonError, shown, typed_json


class JournalError(ValueError):
    """A journal line that is not what it should be; names the file, the line, the key and what to do."""

    def __init__(self, place: str, trouble: str, mend: str = "put the line right") -> None:
        super().__init__(f"{place}: {trouble}; {mend}, or start in another folder")


def _cell(text: str) -> str:
    if not text:
        raise ValueError("found '', expected the id of a cell")
    return text


def _key(text: str) -> str:
    if not KEY.fullmatch(text):
        raise ValueError(f"found {shown(text)}, expected letters, digits, - and _ alone")
    return text


def _sampled(value: Any) -> Any:
    """A value that a sampler can have given."""
    is_number = isinstance(value, float) and math.isfinite(value)
    if not (is_number or value is None or isinstance(value, str | bool | int)):
        raise ValueError(f"found {shown(value)}, expected a finite number, a text, true, false or null")
    return value


@dataclass(frozen=True, kw_only=True)
class JournalEntry:
    """A search trial as its cell asked for it.

    Attributes:
        cell: id of the cell.
        number: place in the cell's search, from 0.
        key: the trial's identity; a configuration sampled twice has two entries with one key.
        values: what was sampled, as Optuna holds it.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    cell: Annotated[str, AfterValidator(_cell)]
    number: Annotated[int, Field(ge=0)]
    key: Annotated[str, AfterValidator(_key)]
    values: dict[str, Annotated[Any, AfterValidator(_sampled)]]

    def line(self) -> bytes:
        """As it stands in the journal, with the end of the line."""
        return (json.dumps(asdict(self), separators=(",", ":")) + "\n").encode()


@dataclass(frozen=True)
class WrittenEntry:
    """An entry, and the file and line that it was read from, for messages."""

    place: str
    entry: JournalEntry


def read_entry(place: str, line: bytes) -> WrittenEntry:
    """The entry that ``line`` holds, which stands at ``place``.

    Raises:
        JournalError: it is not JSON, lacks a key or has a surplus one, or a value that no entry has.
    """
    try:
        return WrittenEntry(place, typed_json(JournalEntry, line.rstrip(b"\r\n")))
    except TypedJsonError as error:
        # A line of its own is always the first: the journal's count is in ``place``.
        raise JournalError(place, str(error).replace(" at line 1 column ", " at character ")) from error
