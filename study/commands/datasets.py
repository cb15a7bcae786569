"""Data, and checkpoints measured on it: ``prepare`` and ``evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from study.commands.parameters import DataFolder, console
from study.given_place import local_path


def prepare(
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET", help="digits, zinc, smnist, cifar10, tsp, cluster, pattern, dd, enzymes or proteins."
        ),
    ],
    data: DataFolder = Path("data"),
    raw: Annotated[
        Path | None,
        typer.Option(
            "--from",
            parser=local_path("--from"),
            metavar="PATH",
            help="Folder of raw files placed by hand. [default: download or make them]",
        ),
    ] = None,
    maker: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Way to the graphs: benchmark, generated, images, tours or library. "
            "[default: what --from or --seed fits]",
        ),
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Unpickle the files in --from: this may run code in them.")
    ] = False,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of a generated dataset. [default: 0]")] = None,
    size: Annotated[
        int | None, typer.Option(metavar="N", help="Training graphs, for a smaller dataset. [default: as published]")
    ] = None,
    pos_enc: Annotated[
        int, typer.Option(metavar="N", help="Laplacian positional encodings of each node; added where missing.")
    ] = 0,
    processes: Annotated[
        int | None, typer.Option(metavar="N", help="Processes that make graphs. [default: one for each core]")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Prepare again, over what is there.")] = False,
) -> None:
    """Prepare DATASET for all trials: make or download its graphs, pack them, show their statistics.

    The command run does this by itself where a dataset is missing. More of each dataset: docs/data.md.
    """
    from bimp.data import prepare as prepare_dataset
    from bimp.data.parallel import available_processes
    from study.faults import require_folder

    require_folder(data, "--data")
    prepared = prepare_dataset(
        dataset,
        data,
        maker=maker,
        raw=raw,
        trust=trust,
        seed=seed,
        size=size,
        positional_encodings=pos_enc,
        processes=processes or available_processes(),
        force=force,
    )
    console().print(prepared.describe(), markup=False, highlight=False, soft_wrap=True)


def evaluate(
    checkpoint: Annotated[
        Path,
        typer.Argument(
            parser=local_path("CHECKPOINT"), metavar="CHECKPOINT", help="File with a state dict of the released code."
        ),
    ],
    config: Annotated[
        Path, typer.Argument(parser=local_path("CONFIG"), metavar="CONFIG", help="Its configuration, a JSON file.")
    ],
    data: DataFolder = Path("data"),
    fold: Annotated[
        int | None, typer.Option(metavar="N", help="Fold, from 0. [default: 0, where the dataset has folds]")
    ] = None,
) -> None:
    """Measure a checkpoint of the authors' released code on a prepared dataset."""
    from study.released_checkpoint import evaluate_checkpoint, render_report

    console().print(render_report(evaluate_checkpoint(checkpoint, config, data, fold=fold)))
