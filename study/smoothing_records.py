"""How alike a trial's rows become, layer by layer: one Parquet file a trial, one row a test graph and layer.

A table of its own beside the records. ``reports`` reads it; so it imports neither torch nor Ray.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from study.records import RecordError
from study.whole_files import make_folder, write_whole

SMOOTHING_SCHEMA_VERSION = 1
SMOOTHING_FOLDER = "smoothing"

MEASURES = (
    "information_gain_kde",
    "information_gain_gaussian",
    "group_distance_ratio",
    "dirichlet_energy",
    "mean_average_distance",
)
"""The columns that are measures (``bimp.smoothing``)."""


@dataclass(frozen=True, kw_only=True)
class SmoothingRow:
    """The measures of one test graph behind one layer.

    Attributes:
        key, cell, seed, fold: of the trial, as in its record.
        layer: 0 for the embedded inputs, then the layers from 1.
        graph: number of the graph in its dataset.
        information_gain_kde, information_gain_gaussian: in bits.
        group_distance_ratio: null where the nodes have no classes, or all the same one.
        dirichlet_energy: squared units of the rows. mean_average_distance: cosine distance, 0 to 2.
    """

    key: str
    cell: str
    seed: int
    fold: int | None
    layer: int
    graph: int
    information_gain_kde: float
    information_gain_gaussian: float
    group_distance_ratio: float | None
    dirichlet_energy: float
    mean_average_distance: float


SMOOTHING_SCHEMA = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("cell", pa.string(), nullable=False),
        pa.field("seed", pa.int64(), nullable=False),
        pa.field("fold", pa.int64()),
        pa.field("layer", pa.int64(), nullable=False),
        pa.field("graph", pa.int64(), nullable=False),
        *(pa.field(name, pa.float64(), nullable=name == "group_distance_ratio") for name in MEASURES),
    ],
    metadata={"bimp_smoothing_schema": str(SMOOTHING_SCHEMA_VERSION)},
)
"""The columns of a file, in order: those of :class:`SmoothingRow`."""


def write_smoothing(rows: Sequence[SmoothingRow], path: Path) -> None:
    """Write ``rows`` to ``path`` so that a reader sees the old file or the new one, never a part."""
    table = pa.Table.from_pylist([asdict(row) for row in rows], schema=SMOOTHING_SCHEMA)
    content = pa.BufferOutputStream()
    pq.write_table(table, content, write_page_checksum=True)
    make_folder(path.parent)
    write_whole(path, content.getvalue().to_pybytes())


def read_smoothing(path: Path) -> pa.Table:
    """The rows of a file as an Arrow table of :data:`SMOOTHING_SCHEMA`.

    Raises:
        RecordError: not a Parquet file, cut short, not of this project, of another version or of another trial.
    """
    mend = "remove it, and run `run_study.py smoothing` again"
    try:
        file = pq.ParquetFile(pa.BufferReader(path.read_bytes()), page_checksum_verification=True)
        table = file.read(use_threads=False)  # a thread of Arrow's may end the process by SIGABRT as it exits
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: not a readable Parquet file ({error}); {mend}") from error
    version = (table.schema.metadata or {}).get(b"bimp_smoothing_schema", b"none").decode(errors="replace")
    if version != str(SMOOTHING_SCHEMA_VERSION) or not table.schema.equals(SMOOTHING_SCHEMA):
        raise RecordError(f"{path}: found smoothing schema {version}, expected {SMOOTHING_SCHEMA_VERSION}; {mend}")
    if set(table.column("key").unique().to_pylist()) != {path.stem}:
        raise RecordError(f"{path}: not the values of trial {path.stem}; {mend}")
    return table
