"""Plan, run and watch a study: ``python run_study.py --help``."""

from __future__ import annotations

import socket
import sys
from functools import partial

import typer

from study.commands.datasets import evaluate, prepare
from study.commands.launching import best, plan, run, status
from study.commands.parameters import examples
from study.commands.with_results import compact, rebuild_mlflow, smoothing
from study.exit_codes import CLUSTER_LOST, INTERRUPTED, WRONG_INPUT
from study.interruption import Interruption
from study.one_line import one_line
from study.signals import ProcessSignals

app = typer.Typer(
    rich_markup_mode="markdown",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help=(
        "Plan, run and watch a study: search each cell of a study file for its best configuration, and train that "
        "again from every seed.\n\n"
        "The study files in search_spaces/ are there to begin with; aggregate.py makes tables and figures of "
        "the results. COMMAND --help says more of each."
    ),
    epilog=examples("plan search_spaces/quickstart.yaml", "run search_spaces/quickstart.yaml"),
)

NETWORK_PATIENCE_S = 20.0
"""After so long without a byte a download has failed; the libraries that download would wait for ever."""

of_a_study = partial(app.command, rich_help_panel="A study")
of_a_study(
    epilog=examples("plan search_spaces/quickstart.yaml", "plan search_spaces/zinc_100k.yaml --measure --slots 8")
)(plan)
of_a_study(
    epilog=examples(
        "run search_spaces/quickstart.yaml",
        "run search_spaces/zinc_100k.yaml --address auto",
        "run search_spaces/tiny.yaml --as second_try",
    )
)(run)
of_a_study(epilog=examples("status results/quickstart"))(status)
of_a_study(epilog=examples("best results/quickstart", 'best results/quickstart "Digits bi-GCN" --out best.yaml'))(best)

of_its_results = partial(app.command, rich_help_panel="With its results")
of_its_results(
    "rebuild-mlflow",
    epilog=examples("rebuild-mlflow results/zinc_100k", "rebuild-mlflow results/zinc_100k --mlflow http://HOST:5000"),
)(rebuild_mlflow)
of_its_results(epilog=examples("compact results/zinc_100k"))(compact)
of_its_results(epilog=examples("smoothing results/zinc_100k"))(smoothing)

of_data = partial(app.command, rich_help_panel="Data and checkpoints")
of_data(epilog=examples("prepare digits", "prepare cluster --seed 0 --size 500", "prepare zinc --from FOLDER --trust"))(
    prepare
)
of_data(epilog=examples("evaluate model.pkl config.json --fold 0"))(evaluate)


def program() -> None:
    """The whole program: :func:`main` in a process of its own, which a signal ends with one line and exit code 130."""
    interruption = Interruption()
    signals = ProcessSignals(interruption, INTERRUPTED)
    try:
        try:
            signals.take()
            main(interruption)
        finally:
            signals.settle()
    except KeyboardInterrupt:
        signals.end_now()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            signals.leave()
        raise


def main(interruption: Interruption | None = None) -> None:
    """Run the command line; wrong input ends in one line and exit code 2."""
    socket.setdefaulttimeout(NETWORK_PATIENCE_S)
    try:
        app(obj=interruption)
    except Exception as error:
        from study.cluster_watch import ClusterLostError
        from study.faults import INTERRUPTIONS, in_one_line

        if isinstance(error, INTERRUPTIONS):
            sys.stderr.write(f"{error}\n")
            sys.exit(INTERRUPTED)
        if isinstance(error, ClusterLostError):
            sys.stderr.write(f"{error}\n")
            sys.exit(CLUSTER_LOST)
        told = in_one_line(error)
        if told is None:
            raise
        sys.stderr.write(f"error: {one_line(told)}\n")
        sys.exit(WRONG_INPUT)


if __name__ == "__main__":
    program()
