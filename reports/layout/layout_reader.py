"""Layout files as they are found and read: strictly, with one line on an error."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from reports.layout.layout_file import FOLDER, AnyLayout, Block, DatasetLayout, Layout, Selector
from reports.records.plan import ResultsError

_MODELS: dict[str, type[BaseModel]] = {"blocks": Block, "sections": Selector, "sides": Selector}
"""What the entries of a list are, by the key of the list."""


def shipped_layouts() -> dict[str, Path]:
    """The layouts of the paper's tables, by name, in the paper's order."""
    return {path.stem.partition("-")[2]: path for path in sorted(FOLDER.glob("*.yaml"))}


def find_layouts(wanted: Sequence[str]) -> tuple[AnyLayout, ...]:
    """The layouts called ``wanted``: a shipped one by its name, another by the path of its file.

    Raises:
        ResultsError: one is not there or is none (the message names the file, the key, and what was expected), or two
            have one name, so that one would overwrite the other.
    """
    layouts = tuple(map(_find, wanted))
    doubled = [name for name, count in Counter(layout.name for layout in layouts).items() if count > 1]
    if doubled:
        raise ResultsError(f"layout: the name {doubled[0]!r} is of two of the layouts, expected different names")
    return layouts


def part_layouts(
    layouts: Sequence[AnyLayout], of_results: bool, of_datasets: bool
) -> tuple[tuple[Layout, ...], tuple[DatasetLayout, ...]]:
    """The layouts of results, and those of datasets; each must be of something that there is.

    Raises:
        ResultsError: a layout of which there is nothing to print.
    """
    results = tuple(layout for layout in layouts if isinstance(layout, Layout))
    datasets = tuple(layout for layout in layouts if isinstance(layout, DatasetLayout))
    if results and not of_results:
        raise ResultsError(f"layout {results[0].name}: a table of results, expected RESULTS or --published")
    if datasets and not of_datasets:
        raise ResultsError(f"layout {datasets[0].name}: a table of datasets, expected --statistics DATA or --published")
    return results, datasets


def read_layout(path: Path) -> AnyLayout:
    """The layout in the file ``path``.

    Raises:
        ResultsError: it is no layout; the message names the file, the key, and what was expected.
    """
    try:
        content = _with_tuples(YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8")))
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ResultsError(f"{path}:{line}: {_one_line(error.problem)}, expected valid YAML") from error
    except (YAMLError, ValueError, LookupError, TypeError, RecursionError) as error:
        # A tag that its value does not bear, an alias of a value that holds it: YAML's reader has no error for them.
        raise ResultsError(f"{path}: {_one_line(error)}, expected valid YAML in UTF-8") from error
    if not isinstance(content, dict):
        raise ResultsError(f"{path}: found {_shown(content)}, expected the keys of a layout: name, title, blocks")
    kind: type[AnyLayout] = DatasetLayout if "datasets" in content else Layout
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        # A misspelt key tells more than the one that is missing for it.
        first = min(error.errors(), key=lambda details: details["type"] not in ("extra_forbidden", "invalid_key"))
        raise ResultsError(f"{path}: {_message(kind, first)}") from error


def _find(wanted: str) -> AnyLayout:
    shipped = shipped_layouts()
    if wanted in shipped:
        return read_layout(shipped[wanted])
    path = Path(wanted)
    if path.is_file():
        return read_layout(path)
    near = difflib.get_close_matches(wanted, shipped, n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    raise ResultsError(
        f"layout: found {wanted!r}, expected the path of a layout file or one of {', '.join(shipped)}{meant}"
    )


def _with_tuples(content: Any) -> Any:
    """Sequences as tuples, which a strict model takes for nothing else."""
    if isinstance(content, dict):
        return {key: _with_tuples(value) for key, value in content.items()}
    return tuple(map(_with_tuples, content)) if isinstance(content, list) else content


def _message(kind: type[BaseModel], details: ErrorDetails) -> str:
    path = details["loc"]
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
    if details["type"] == "extra_forbidden":
        return f"{key}: found an unknown key, expected {_known_key(kind, path)}"
    found = "nothing" if details["type"] == "missing" else _shown(details["input"])
    return f"{key}: found {found}, expected {_expected(details)}"


def _known_key(kind: type[BaseModel], path: Sequence[int | str]) -> str:
    """The nearest key that may stand there, or all of them."""
    for part in path[:-1]:
        kind = _MODELS.get(str(part), kind)
    names = list(kind.model_fields)
    nearest = difflib.get_close_matches(str(path[-1]), names, n=1)
    return nearest[0] if nearest else f"one of {', '.join(names)}"


def _expected(details: ErrorDetails) -> str:
    context = details.get("ctx", {})
    match details["type"]:
        case "int_type":
            return "a whole number"
        case "float_type" | "finite_number":
            return "a number"
        case "string_type":
            return "text"
        case "string_pattern_mismatch" if context["pattern"] == r"\S":
            return "text that is not empty"
        case "string_pattern_mismatch":
            return "letters, digits, hyphens and underscores alone"
        case "string_too_long":
            return f"{context['max_length']} characters at most"
        case "bool_type":
            return "true or false"
        case "tuple_type":
            return "a list"
        case "too_short":
            return "a list of one or more"
        case "model_type" | "dict_type" | "mapping_type":
            return "a mapping of keys and values"
        case "greater_than_equal":
            return f"{context['ge']} or more"
        case "less_than_equal":
            return f"{context['le']} or less"
        case "literal_error":
            return "one of " + str(context["expected"]).replace("'", "").replace(" or ", ", ")
        case "invalid_key":
            return "a word as the key"
        case "missing":
            return "a value: the key is required"
        case _:
            return details["msg"]


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    if isinstance(value, dict):
        return f"a mapping of {', '.join(map(str, value))}" if value else "an empty mapping"
    return repr(value) if not isinstance(value, str) or len(value) <= 60 else repr(f"{value[:57]}...")


def _one_line(problem: object) -> str:
    return " ".join(str(problem).split())
