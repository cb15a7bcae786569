"""Turn the records of a study into the tables of a paper: ``aggregate.py tables RESULTS``."""

from __future__ import annotations

import typer

from reports.commands.around_tables import check, explain, fidelity, figures, page
from reports.commands.parameters import examples
from reports.commands.tables import tables

app = typer.Typer(
    rich_markup_mode="markdown",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog=examples("tables results/quickstart", "check results/quickstart"),
)


@app.callback()
def main() -> None:
    """Make tables, figures and checks of the records of a study.

    RESULTS is the folder that run_study.py run wrote, whether the study has ended or not. Works on any machine: needs
    neither torch nor Ray nor MLflow. COMMAND --help says more of each.
    """


app.command(
    epilog=examples(
        "tables results/zinc_100k --out paper/tables",
        "tables results/first results/second --layout graph_level",
        "tables --published",
    )
)(tables)
app.command(epilog=examples("figures results/zinc_100k"))(figures)
app.command(epilog=examples("page results/zinc_100k"))(page)
app.command(epilog=examples('explain results/quickstart "Digits bi-GCN"'))(explain)
app.command(epilog=examples("check results/zinc_100k"))(check)
app.command(epilog=examples("fidelity"))(fidelity)


if __name__ == "__main__":
    app()
