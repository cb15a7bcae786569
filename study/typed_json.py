"""JSON files of the project's own as typed values; what is wrong with one is told in a line."""

from __future__ import annotations

from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")

_LONGEST_VALUE = 60


class TypedJsonError(ValueError):
    """A text that is not the JSON of a type: which key, what was found and what was expected."""


def typed_json(kind: type[T], text: bytes) -> T:
    """What ``text`` says of the dataclass ``kind``; nothing is converted, and keys that it has not are passed over.

    Raises:
        TypedJsonError: it is not JSON, lacks a key, or has a value of another type.
    """
    try:
        return TypeAdapter(kind).validate_json(text, strict=True)
    except ValidationError as error:
        raise TypedJsonError(_first(error)) from error


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
    found = repr(details["input"])
    shown = found if len(found) <= _LONGEST_VALUE else f"{found[:_LONGEST_VALUE]}..."
    return f"{at}found {shown}, expected {details['msg'].removeprefix('Input should be ')}"
