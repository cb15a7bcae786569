"""Turn the records of a study into the tables of a paper: ``aggregate.py tables RESULTS``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from study.given_place import GivenPlaceError, local_path, place_or_url
from study.one_line import one_line

if TYPE_CHECKING:
    from reports.layout.layout_file import DatasetLayout, Layout


def _refusing(parse: Callable[[str | Path], Path]) -> Callable[[str | Path], Path]:
    """``parse``, whose refusals end the program in one line."""

    def parsed(given: str | Path) -> Path:
        from study.store_access import StoreAccessError

        try:
            return parse(given)
        except (GivenPlaceError, StoreAccessError) as error:
            _fail(str(error))

    return parsed


def _out(given: str | Path) -> Path:
    from study.store_access import require_bucket

    place = place_or_url("--out")(given)
    require_bucket(place, "name another with --out")  # to write there would make a bucket
    return place


def _place(told: str) -> Any:
    """The option ``--out`` of a command; ``told``: its help."""
    return typer.Option(parser=_refusing(_out), metavar="PATH", help=told, show_default=False)


_RESULTS = typer.Argument(
    parser=_refusing(place_or_url("RESULTS")),
    metavar="RESULTS...",
    help="Results folders of one or more studies, or their URLs.",
    show_default=False,
)
Results = Annotated[list[Path], _RESULTS]
OneResults = Annotated[
    Path,
    typer.Argument(
        parser=_refusing(place_or_url("RESULTS")),
        metavar="RESULTS",
        help="Results folder of a study, or its URL.",
        show_default=False,
    ),
]

app = typer.Typer(
    rich_markup_mode="markdown",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog=(
        "Examples:\n\n"
        "- `python aggregate.py tables results/quickstart`\n\n"
        "- `python aggregate.py check results/quickstart`"
    ),
)


@app.callback()
def main() -> None:
    """Make tables, figures and checks of the records of a study.

    RESULTS is the folder that run_study.py run wrote, whether the study has ended or not. Works on any machine: needs
    neither torch nor Ray nor MLflow. COMMAND --help says more of each.
    """


@app.command(
    epilog=(
        "Examples:\n\n"
        "- `python aggregate.py tables results/zinc_100k --out paper/tables`\n\n"
        "- `python aggregate.py tables results/first results/second --layout graph_level`\n\n"
        "- `python aggregate.py tables --published`"
    )
)
def tables(
    results: Annotated[list[Path] | None, _RESULTS] = None,
    out: Annotated[
        Path | None,
        _place("Folder to write to, or its URL. [default: tables in the first RESULTS]"),
    ] = None,
    layout: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|FILE",
            help="Add a table in the shape of a file, or of one of the paper's by its name (docs/tables.md); several "
            "may be given.",
            show_default=False,
        ),
    ] = None,
    bold: Annotated[
        Literal["paper", "significant"],
        typer.Option(
            metavar="paper|significant",
            help="Bold is a mean better than the vanilla model's, or only one that stays so under Holm's correction.",
        ),
    ] = "paper",
    published: Annotated[
        bool, typer.Option("--published", help="Write the paper's own tables, from its printed numbers.")
    ] = False,
    statistics: Annotated[
        Path | None,
        typer.Option(
            parser=_refusing(local_path("--statistics")),
            metavar="PATH",
            help="Write the table of the datasets prepared in this folder, beside the paper's.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write tables as LaTeX, Markdown, CSV and HTML, and show that of the studies.

    Name RESULTS, for the table of one or more studies with its comparisons, or --published, or --statistics, or
    several of them.
    """
    if not results and statistics is None and not published:
        _fail("found neither RESULTS nor --published nor --statistics DATA, expected one of them or more")
    if out is not None and out.exists() and not out.is_dir():
        _fail(f"{out}: found a file, expected a folder; name another with --out")
    folder = out or (results[0] / "tables" if results else Path("tables"))
    with _one_line_errors():
        of_results, of_datasets = _layouts(
            layout or [], bool(results) or published, published or statistics is not None
        )
        if results:
            _write_study_tables(results, folder, of_results, bold)
        if published:
            from reports.tables.paper_tables import write_paper_tables

            paper = folder / "paper" if results or statistics is not None else folder
            files, unfit = write_paper_tables(paper, (*of_results, *of_datasets), bold)
            _show(files)
            _tell("left out of the paper's own tables:", unfit)
        if statistics is not None:
            from reports.tables.dataset_statistics import write_statistics

            _show(write_statistics(statistics, folder))
            if of_datasets:
                from reports.tables.dataset_tables import write_prepared_datasets

                _show(write_prepared_datasets(statistics, of_datasets, folder))


@app.command(epilog=("Example:\n\n- `python aggregate.py figures results/zinc_100k`"))
def figures(
    results: OneResults,
    out: Annotated[
        Path | None,
        _place("Folder to write to, or its URL. [default: RESULTS/figures]"),
    ] = None,
    measure: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Measure of over-smoothing to draw by layer: information_gain_kde, information_gain_gaussian, "
            "group_distance_ratio, dirichlet_energy or mean_average_distance.",
        ),
    ] = "information_gain_kde",
) -> None:
    """Draw every picture that the records allow, as PDF, SVG and PNG, and say why the others are not there."""
    from reports.pictures import write_pictures

    with _one_line_errors():
        paths, skipped = write_pictures(results, out or results / "figures", measure)
    _show(paths)
    _tell("skipped:", skipped)
    if not paths:
        _fail(f"{results}: found nothing to draw; run the study first")


@app.command(epilog=("Example:\n\n- `python aggregate.py page results/zinc_100k`"))
def page(
    results: Results,
    out: Annotated[
        Path | None,
        _place("File to write, or its URL. [default: page.html in the first RESULTS]"),
    ] = None,
) -> None:
    """Write one HTML file that works offline.

    It has the tables, what stands behind each number, the check, the pictures and the plan.
    """
    if out is not None and out.is_dir():
        _fail(f"{out}: found a folder, expected the name of a file, such as {out / 'page.html'}")
    with _one_line_errors():
        from reports.page import write_page

        _show([write_page(results, out)])


@app.command(epilog=('Example:\n\n- `python aggregate.py explain results/quickstart "Digits bi-GCN"`'))
def explain(
    results: OneResults,
    cell: Annotated[
        str,
        typer.Argument(
            metavar="CELL", help='Id of a cell, or words of its name, as "ZINC bi-GCN 500k".', show_default=False
        ),
    ],
) -> None:
    """Show what lies behind one number of a table.

    Its trials, configuration, code, data and files, and how it was chosen.
    """
    from reports.evidence.explain import explain

    with _one_line_errors():
        text = explain(results, cell)
    sys.stdout.write(text)


@app.command(epilog=("Example:\n\n- `python aggregate.py check results/zinc_100k`"))
def check(
    results: Results,
) -> None:
    """Look for what makes a table untrustworthy.

    Exit code: 0, or 1 where something forbids publishing it, or 2 on wrong input.
    """
    from reports.check import check_together
    from reports.check.rendering import finding_lines, finding_table, summary_line

    with _one_line_errors():
        findings = check_together(results)
    if findings and sys.stdout.isatty():
        from rich.console import Console

        Console(highlight=False).print(finding_table(findings))
    else:
        sys.stdout.writelines(f"{line}\n" for line in finding_lines(findings))
    sys.stdout.write(f"{summary_line(findings, len(results))}\n")
    if any(finding.severity == "forbids" for finding in findings):
        raise typer.Exit(1)


@app.command(epilog=("Example:\n\n- `python aggregate.py fidelity`"))
def fidelity(
    folder: Annotated[
        Path,
        typer.Argument(
            parser=_refusing(local_path("FOLDER")), metavar="FOLDER", help="Folder that holds results folders."
        ),
    ] = Path("reports/reproduction"),
    out: Annotated[
        Path, typer.Option(parser=_refusing(local_path("--out")), metavar="PATH", help="File to write.")
    ] = Path("docs/fidelity.md"),
) -> None:
    """Write the page that says what of the paper holds here.

    It sets the studies in FOLDER beside the paper's printed numbers and shows what their gates do.
    """
    from reports.fidelity.page import write_fidelity

    with _one_line_errors():
        _show([write_fidelity(folder, out)])


def _layouts(
    names: Sequence[str], of_results: bool, of_datasets: bool
) -> tuple[tuple[Layout, ...], tuple[DatasetLayout, ...]]:
    if not names:  # most calls name none, and need not import how they are read
        return (), ()
    from reports.layout.layout_reader import find_layouts, part_layouts

    return part_layouts(find_layouts(names), of_results, of_datasets)


def _write_study_tables(
    results: Sequence[Path], out: Path, layouts: Sequence[Layout], bold: Literal["paper", "significant"]
) -> None:
    from reports import write_tables
    from reports.tables.terminal import print_terminal
    from reports.tables.write import write_compared

    files = write_compared(write_tables(results, out, bold, layouts), out)
    print_terminal(files.table, sys.stdout)
    _show(files.paths)
    _tell("left out:", files.unfit)


def _tell(what: str, lines: Iterable[str]) -> None:
    for line in lines:
        print(what, line, file=sys.stderr)


def _show(paths: Iterable[Path]) -> None:
    for path in paths:
        sys.stdout.write(f"{path}\n")


@contextmanager
def _one_line_errors() -> Iterator[None]:
    from reports import ResultsError
    from study.location import is_client_error
    from study.records import RecordError

    try:
        yield
    except (ResultsError, RecordError) as error:
        _fail(str(error))
    except BrokenPipeError:
        raise  # who read our output has enough: no error, and typer ends without a word
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}; name another place" if error.filename else str(error))
    except Exception as error:
        if not is_client_error(error):
            raise
        _fail(f"the object store does not answer as it should ({type(error).__name__}: {error}); try again")


def _fail(message: str) -> NoReturn:
    print("error:", one_line(message), file=sys.stderr)
    raise typer.Exit(2)


if __name__ == "__main__":
    app()
