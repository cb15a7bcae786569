"""What ``--help`` shows: plain text that reads well on any terminal, with no word broken."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

_INDENT = "  "
_LONGEST_NAME = 24
"""A longer first column of a row stands on a line of its own."""

_SAID_ELSEWHERE = re.compile(r"; (required|x>=\d+)(?=\])|\[(required|x>=\d+)\]")
"""In a parameter's help: whether it is required stands in the usage, and what it may be in the error."""

Row = tuple[str, str]


class HelpfulCommand(TyperCommand):
    """A command whose help says how it is called, what it is for, what it takes, by group, and gives examples.

    ``epilog`` holds the examples, one a line, without the name of the program.
    """

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The arguments, those in brackets that may be left out, and then the options."""
        arguments = [each for each in self.get_params(ctx) if isinstance(each, TyperArgument)]
        return [*(_name(each) if each.required else f"[{_name(each)}]" for each in arguments), "[OPTIONS]"]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the page."""
        usage = " ".join((_program(ctx.find_root()), self.name or "", *self.collect_usage_pieces(ctx)))
        formatter.write(_page(usage, self.help, _parameters(self, ctx), _examples(self.epilog, ctx), formatter.width))


class HelpfulGroup(TyperGroup):
    """The commands of a program, by group, each with the first paragraph of its help."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the page."""
        groups: dict[str, list[Row]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None:
                panel = getattr(command, "rich_help_panel", None)
                summary = next(_paragraphs(command.help), "")
                groups.setdefault(panel if isinstance(panel, str) else "Commands", []).append((name, summary))
        usage = f"{_program(ctx)} COMMAND ..."
        formatter.write(_page(usage, self.help, groups, _examples(self.epilog, ctx), formatter.width))


def _page(usage: str, text: str | None, groups: dict[str, list[Row]], examples: Sequence[str], width: int) -> str:
    parts = [f"Usage: {usage}"]
    parts += ["\n".join(_wrapped(paragraph, width, _INDENT)) for paragraph in _paragraphs(text)]
    for title, rows in groups.items():
        if rows:
            parts.append("\n".join((f"{title}:", *_table(rows, width))))
    if examples:
        heading = "Example:" if len(examples) == 1 else "Examples:"
        parts.append("\n".join((heading, *(f"{_INDENT}{example}" for example in examples))))
    return "\n\n".join(parts) + "\n"


def _parameters(command: TyperCommand, ctx: Any) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {"Arguments": [], "Options": []}
    for each in command.get_params(ctx):
        record = each.get_help_record(ctx)
        if record is None:  # hidden
            continue
        told = "Show this page." if each.name == "help" else " ".join(_SAID_ELSEWHERE.sub("", record[1]).split())
        if isinstance(each, TyperOption):
            panel = getattr(each, "rich_help_panel", None)
            name = each.opts[0] if each.is_flag else f"{each.opts[0]} {each.metavar}"
            groups.setdefault(panel if isinstance(panel, str) else "Options", []).append((name, told))
        else:
            groups["Arguments"].append((_name(each), told))
    others = groups.pop("Options")
    if len(groups) <= 2:  # a single group beside the arguments tells nothing
        others = [row for title in list(groups) if title != "Arguments" for row in groups.pop(title)] + others
    return {**groups, "Options": others}


def _name(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _program(root: Any) -> str:
    """As it is called: a script by way of Python."""
    name = Path(root.info_name or "").name
    return f"python {name}" if name.endswith(".py") else name


def _examples(epilog: str | None, ctx: Any) -> list[str]:
    program = _program(ctx.find_root())
    return [f"{program} {line.strip()}" for line in (epilog or "").splitlines() if line.strip()]


def _paragraphs(text: str | None) -> Iterator[str]:
    for paragraph in textwrap.dedent(text or "").split("\n\n"):
        if paragraph.strip():
            yield " ".join(paragraph.split())


def _table(rows: Sequence[Row], width: int) -> Iterator[str]:
    column = min(_LONGEST_NAME, max(len(name) for name, _ in rows))
    for name, told in rows:
        margin = _INDENT + " " * (column + len(_INDENT))
        first, *rest = _wrapped(told, width, margin) or [""]
        if len(name) > column:
            yield _INDENT + name
            yield first
        else:
            yield (_INDENT + name).ljust(len(margin)) + first[len(margin) :]
        yield from rest


def _wrapped(text: str, width: int, margin: str) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=margin,
        subsequent_indent=margin,
        break_long_words=False,
        break_on_hyphens=False,
    )
