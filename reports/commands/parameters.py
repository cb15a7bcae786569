"""What commands of ``aggregate.py`` have in common: arguments, options, examples in their help."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from reports.commands.telling import fail
from study.given_place import GivenPlaceError, place_or_url


def examples(*commands: str) -> str:
    """The end of a command's help: how it may be called, a line each; given are the words behind ``aggregate.py``."""
    heading = "Example:" if len(commands) == 1 else "Examples:"
    return "\n\n".join((heading, *(f"- `python aggregate.py {each}`" for each in commands)))


def refusing(parse: Callable[[str | Path], Path]) -> Callable[[str | Path], Path]:
    """``parse``, whose refusals end the program in one line."""

    def parsed(given: str | Path) -> Path:
        from study.store_access import StoreAccessError

        try:
            return parse(given)
        except (GivenPlaceError, StoreAccessError) as error:
            fail(str(error))

    return parsed


def _out(given: str | Path) -> Path:
    from study.store_access import require_bucket

    place = place_or_url("--out")(given)
    require_bucket(place, "name another with --out")  # to write there would make a bucket
    return place


def place_option(told: str) -> Any:
    """The option ``--out`` of a command; ``told``: its help."""
    return typer.Option(parser=refusing(_out), metavar="PATH", help=told, show_default=False)


RESULTS = typer.Argument(
    parser=refusing(place_or_url("RESULTS")),
    metavar="RESULTS",
    help="Results folders of one or more studies, or their URLs.",
    show_default=False,
)
Results = Annotated[list[Path], RESULTS]
OneResults = Annotated[
    Path,
    typer.Argument(
        parser=refusing(place_or_url("RESULTS")),
        metavar="RESULTS",
        help="Results folder of a study, or its URL.",
        show_default=False,
    ),
]
