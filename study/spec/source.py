"""A study file as text: YAML 1.2 into plain values, the line of every key, and the one-line error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import ConstructorError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

MOST_VALUES = 200_000
"""In a study file: ten lists of ten aliases each, all of the list before, are ten thousand million values."""

KeyPath = tuple[str | int, ...]
"""Where a value stands: keys of mappings and indices of lists, from the top of the file."""


class SpecError(ValueError):
    """A study file that cannot be run; its text is one line: ``FILE:LINE: key.path: found X, expected Y``."""


@dataclass(frozen=True)
class Source:
    """Where a study was read from, for its errors. All sources are equal: the same study elsewhere is the same study.

    Attributes:
        file: name of the file as the user gave it.
        lines: the line, counted from 1, of every key and list entry.
    """

    file: str = field(default="study", compare=False)
    lines: Mapping[KeyPath, int] = field(default_factory=dict, compare=False, repr=False)

    def error(self, path: KeyPath, message: str) -> SpecError:
        """The error of the value at ``path``; its line is that of the nearest key around it that exists."""
        # A scalar stands for a list of one: there is no entry [0] that a reader could see in the file.
        while path and isinstance(path[-1], int) and path not in self.lines:
            path = path[:-1]
        known = path
        while known and known not in self.lines:
            known = known[:-1]
        line = self.lines.get(known)
        where = self.file if line is None else f"{self.file}:{line}"
        named = f"{path_text(path)}: " if path else ""
        return SpecError(f"{where}: {named}{message}")


def path_text(path: KeyPath) -> str:
    """A key path as people write it: ``space.placement.choice[1]``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def value_text(value: object) -> str:
    """A value as an error shows it: close to how it stands in the file, never longer than a line."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return repr(value) if len(value) <= 60 else repr(value[:57] + "...")
    if isinstance(value, list | tuple):
        if not value:
            return "an empty list"
        return "[" + ", ".join(str(entry) if isinstance(entry, str) else value_text(entry) for entry in value) + "]"
    if isinstance(value, dict):
        return f"a mapping of {', '.join(map(str, value))}" if value else "an empty mapping"
    return str(value)


def read_yaml(text: str, file: str) -> tuple[Any, Source]:
    """The plain values of one YAML 1.2 document (so ``none`` and ``no`` are words, ``1e-4`` is a number).

    Raises:
        SpecError: the text is not YAML, a key stands twice, or a value is neither text, number, truth value, null,
            list nor mapping.
    """
    yaml = YAML(typ="safe", pure=True)
    lines: dict[KeyPath, int] = {(): 1}
    try:
        root = yaml.compose(text)
        value = None if root is None else _value(root, (), _Reading(yaml, lines, Source(file, lines)))
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        found = " ".join(str(error.problem).split())
        raise SpecError(f"{file}:{line}: {found}, expected valid YAML") from error
    except YAMLError as error:
        found = " ".join(str(error).split())
        raise SpecError(f"{file}:1: {found}, expected valid YAML") from error
    except RecursionError as error:
        raise SpecError(f"{file}: found lists or mappings within each other without end, expected a study") from error
    return value, Source(file, lines)


def with_value(text: str, file: str, key: str, value: str) -> str:
    """``text`` with ``value``, as YAML writes it, in the place of that of the top key ``key``, if it has a single one.

    Raises:
        SpecError: the text is not YAML.
    """
    read_yaml(text, file)
    root = YAML(typ="safe", pure=True).compose(text)
    for key_node, node in root.value if isinstance(root, MappingNode) else ():
        if key_node.value == key and isinstance(node, ScalarNode):
            return str(text[: node.start_mark.index] + value + text[node.end_mark.index :])
    return text


@dataclass(frozen=True)
class _Reading:
    yaml: YAML
    lines: dict[KeyPath, int]
    source: Source
    ancestors: tuple[Node, ...] = ()

    def inside(self, node: Node, path: KeyPath) -> _Reading:
        if len(self.lines) > MOST_VALUES:
            expected = f"at most {MOST_VALUES:,}; an alias stands for all that its anchor holds"
            raise self.source.error(path, f"found more than {MOST_VALUES:,} values up to here, expected {expected}")
        if any(node is ancestor for ancestor in self.ancestors):
            raise self.source.error(path, "found an alias of a value that holds it, expected a value")
        return _Reading(self.yaml, self.lines, self.source, (*self.ancestors, node))


def _value(node: Node, path: KeyPath, reading: _Reading) -> Any:
    if isinstance(node, MappingNode):
        return dict(_entries(node, path, reading.inside(node, path)))
    if isinstance(node, SequenceNode):
        inner = reading.inside(node, path)
        result = []
        for index, child in enumerate(node.value):
            reading.lines[(*path, index)] = child.start_mark.line + 1
            result.append(_value(child, (*path, index), inner))
        return result
    try:
        value = reading.yaml.constructor.construct_object(node)
    except (ConstructorError, ValueError) as error:
        raise reading.source.error(path, f"found {node.value!r}, expected text, a number or true or false") from error
    if value is not None and not isinstance(value, str | bool | int | float):
        raise reading.source.error(path, f"found a {type(value).__name__}, expected text (in quotes) or a number")
    return value


def _entries(node: MappingNode, path: KeyPath, reading: _Reading) -> Iterator[tuple[str, Any]]:
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, ScalarNode) or str(key_node.tag).endswith(":merge"):
            reading.lines[(*path, "?")] = line
            raise reading.source.error((*path, "?"), "found a key that is not a word, expected a word")
        key = str(key_node.value)
        inner = (*path, key)
        if inner in reading.lines:
            first = reading.lines[inner]
            reading.lines[inner] = line
            raise reading.source.error(inner, f"found the key a second time (first in line {first}), expected it once")
        reading.lines[inner] = line
        yield key, _value(value_node, inner, reading)
