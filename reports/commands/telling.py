"""What commands of ``aggregate.py`` say: the files that they wrote, what they left out, and errors in one line."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import typer

from study.one_line import one_line


def show(paths: Iterable[Path]) -> None:
    """The paths that were written, a line each."""
    for path in paths:
        sys.stdout.write(f"{path}\n")


def tell(what: str, lines: Iterable[str]) -> None:
    """Lines for whoever called, each begun with ``what``, on standard error."""
    for line in lines:
        print(what, line, file=sys.stderr)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Within it, what a user can mend ends the program in one line and exit code 2."""
    from reports import ResultsError
    from study.location import is_client_error
    from study.records import RecordError

    try:
        yield
    except (ResultsError, RecordError) as error:
        fail(str(error))
    except BrokenPipeError:
        raise  # who read our output has enough: no error, and typer ends without a word
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}; name another place" if error.filename else str(error))
    except Exception as error:
        if not is_client_error(error):
            raise
        fail(f"the object store does not answer as it should ({type(error).__name__}: {error}); try again")


def fail(message: str) -> NoReturn:
    """End the program: one line on standard error, exit code 2."""
    print("error:", one_line(message), file=sys.stderr)
    raise typer.Exit(2)
