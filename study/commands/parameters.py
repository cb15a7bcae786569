"""What commands of ``run_study.py`` have in common: arguments, options, examples in their help, the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from study.given_place import given_text, local_path, place_or_url

PLACES, CLUSTER = "Where things lie", "Where it runs"
"""Groups of options."""

WIDTH_OF_FILES = 120

StudyFile = Annotated[
    Path,
    typer.Argument(
        parser=place_or_url("FILE", "a study file"),
        metavar="FILE",
        help="The study file, YAML as in search_spaces/, or its URL.",
    ),
]
DataFolder = Annotated[
    Path,
    typer.Option(
        "--data",
        envvar="BIMP_DATA",
        parser=local_path("--data"),
        metavar="PATH",
        help="Folder of the prepared datasets.",
        rich_help_panel=PLACES,
    ),
]
ResultsOption = Annotated[
    Path | None,
    typer.Option(
        "--results",
        parser=place_or_url("--results"),
        metavar="DIR",
        rich_help_panel=PLACES,
        help="Results folder, or its URL (s3://BUCKET/FOLDER, gs://...). [default: results/NAME, by the study's name]",
    ),
]
Results = Annotated[
    Path,
    typer.Argument(
        parser=place_or_url("RESULTS"),
        metavar="RESULTS",
        help="Results folder of the study, or its URL (s3://BUCKET/FOLDER, gs://...).",
    ),
]
MlflowOption = Annotated[
    str | None,
    typer.Option(
        "--mlflow",
        parser=given_text("--mlflow", "a tracking URI"),
        metavar="URI",
        rich_help_panel=PLACES,
        help="Tracking URI of MLflow. [default: mlflow.db in the results folder]",
    ),
]


def examples(*commands: str) -> str:
    """The end of a command's help: how it may be called, a line each; given are the words behind ``run_study.py``."""
    heading = "Example:" if len(commands) == 1 else "Examples:"
    return "\n\n".join((heading, *(f"- `python run_study.py {each}`" for each in commands)))


def console() -> Console:
    """The terminal at its width; files and pipes get one that cuts nothing."""
    return Console() if sys.stdout.isatty() else Console(width=WIDTH_OF_FILES, force_terminal=False)
