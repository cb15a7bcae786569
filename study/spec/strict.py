"""Pydantic models that refuse unknown keys, with errors that say what was found and what was expected."""

from __future__ import annotations

import difflib
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from study.spec.source import KeyPath, Source, SpecError, value_text


def refused(value: object, expected: str) -> PydanticCustomError:
    """The error of a validator that did not expect ``value``."""
    return PydanticCustomError(
        "refused", "found {found}, expected {expected}", {"found": value_text(value), "expected": expected}
    )


def refused_at(path: KeyPath, found: str, expected: str) -> ValidationError:
    """The error of a validator of a whole mapping about what stands at ``path`` in it."""
    problem = PydanticCustomError(
        "refused", "found {found}, expected {expected}", {"found": found, "expected": expected}
    )
    return ValidationError.from_exception_data("study", [InitErrorDetails(type=problem, loc=path, input=None)])


class Strict(BaseModel):
    """A frozen mapping of known keys; a field's description is what its error expects where it is missing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, given: Any) -> Any:
        if isinstance(given, cls):
            return given
        if not isinstance(given, dict):
            raise refused(given, f"a mapping with keys such as {cls.key_names()[0]}")
        for key in given:
            if key not in cls.model_fields:
                raise refused_at((key,), "an unknown key", cls.expected_instead_of(str(key)))
        for key, field in cls.model_fields.items():
            if field.is_required() and key not in given:
                raise refused_at((key,), "nothing", field.description or "a value")
        return given

    @classmethod
    def expected_instead_of(cls, key: str) -> str:
        """What an unknown ``key`` should have been: the nearest name, or all of them."""
        names = cls.key_names()
        nearest = difflib.get_close_matches(key, names, n=1)
        return nearest[0] if nearest else f"one of {', '.join(names)}"

    @classmethod
    def key_names(cls) -> list[str]:
        """The known keys, the most telling first."""
        return list(cls.model_fields)


def first_error(error: ValidationError, source: Source) -> SpecError:
    """The first of the errors in the order of the file, as one line."""
    lines = [source.error(tuple(details["loc"]), _message(dict(details))) for details in error.errors()]
    return min(lines, key=lambda line: _line_number(line, source))


def _line_number(error: SpecError, source: Source) -> int:
    number = str(error).removeprefix(f"{source.file}:").partition(":")[0]
    return int(number) if number.isdigit() else 0


def _message(details: dict[str, Any]) -> str:
    kind, context = details["type"], details.get("ctx", {})
    if kind == "refused":
        return str(details["msg"])
    return f"found {value_text(details['input'])}, expected {_expected(kind, context, details['msg'])}"


def _expected(kind: str, context: dict[str, Any], message: str) -> str:
    match kind:
        case "int_type" | "int_from_float" | "int_parsing":
            return "a whole number"
        case "float_type" | "finite_number" | "float_parsing":
            return "a number"
        case "string_type":
            return "text"
        case "bool_type":
            return "true or false"
        case "tuple_type" | "list_type":
            return "a list"
        case "greater_than_equal":
            return f"{context['ge']} or more"
        case "greater_than":
            return f"a number above {context['gt']:g}"
        case "less_than_equal":
            return f"{context['le']} or less"
        case "less_than":
            return f"a number below {context['lt']:g}"
        case "literal_error":
            return "one of " + str(context["expected"]).replace("'", "").replace(" or ", ", ")
        case _:
            return message
