"""JSON files of the project's own as typed values; what is wrong with one is told in a line."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")

_LONGEST_VALUE = 60


class TypedJsonError(ValueError):
    """A text that is not the JSON of a type: which key, what was found and what was expected."""


def typed_json(kind: type[T], text: bytes) -> T:
    """What ``text`` says of the dataclass ``kind``; nothing is converted.

    Keys that it has not are passed over, unless its ``__pydantic_config__`` forbids them.

    Raises:
        TypedJsonError: it is not JSON, lacks a key, or has a value of another type.
    """
    try:
        found: T = _adapter(kind).validate_json(text, strict=True)  # type: ignore[arg-type]  # a class is hashable
    except ValidationError as error:
        raise TypedJsonError(_first(error)) from error
    return found


def shown(value: object) -> str:
    """``value`` as a message shows it."""
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """Made once for each kind: that takes longer than to read a line."""
    return TypeAdapter(kind)


def _first(error: ValidationError) -> str:
    details = error.errors()[0]
    if details["type"] == "json_invalid":
        return f"not readable as JSON ({details['msg'].removeprefix('Invalid JSON: ')})"
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in details["loc"]).removeprefix(".")
    at = f"{key}: " if key else ""
    if details["type"] == "missing":
        return f"{at}found nothing, expected a value"
    if details["type"] == "value_error":  # of the type itself, which says all
        return f"{at}{details['ctx']['error']}"
    if details["type"] == "unexpected_keyword_argument":
        return f"{at}found {shown(details['input'])}, expected no such key"
    return f"{at}found {shown(details['input'])}, expected {details['msg'].removeprefix('Input should be ')}"
