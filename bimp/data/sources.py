"""Every way to every dataset, and which one is taken."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bimp.data.benchmark import BenchmarkFile
from bimp.data.cluster import Cluster
from bimp.data.digits import Digits
from bimp.data.errors import DataError
from bimp.data.raw import Published
from bimp.data.source import Source
from bimp.data.superpixels import Superpixels
from bimp.data.tours import TourFiles, Tours
from bimp.data.tu import TUGraphs
from bimp.data.zinc import Zinc

SMNIST = BenchmarkFile(
    name="smnist",
    raw_name="MNIST",
    sizes={"train": 55_000, "val": 5_000, "test": 10_000},
    published=Published(graphs=70_000, mean_nodes=70.57, mean_edges=564.53),
)
CIFAR10 = BenchmarkFile(
    name="cifar10",
    raw_name="CIFAR10",
    sizes={"train": 45_000, "val": 5_000, "test": 10_000},
    published=Published(graphs=60_000, mean_nodes=117.63, mean_edges=941.07),
)
TSP = BenchmarkFile(
    name="tsp",
    raw_name="TSP",
    sizes={"train": 10_000, "val": 1_000, "test": 1_000},
    published=Published(graphs=12_000, mean_nodes=275.76, mean_edges=6_894.04),
)
CLUSTER = BenchmarkFile(
    name="cluster",
    raw_name="CLUSTER",
    sizes={"train": 10_000, "val": 1_000, "test": 1_000},
    published=Published(graphs=12_000, mean_nodes=117.20, mean_edges=4_301.72),
)
PATTERN = BenchmarkFile(
    name="pattern",
    raw_name="PATTERN",
    sizes={"train": 10_000, "val": 2_000, "test": 2_000},
    # The paper does not use it: PyTorch Geometric's documentation rounds, and does not say over which splits it counts.
    published=Published(graphs=14_000, mean_nodes=118.9, mean_edges=6_098.9, nodes_within=0.5, edges_within=60.0),
)
DD = TUGraphs(name="dd", raw_name="DD", graphs=1_178, nodes=334_925, edges=1_686_092, attributes=None, labels=89)
ENZYMES = TUGraphs(name="enzymes", raw_name="ENZYMES", graphs=600, nodes=19_580, edges=74_564, attributes=18)
PROTEINS = TUGraphs(name="proteins", raw_name="PROTEINS_full", graphs=1_113, nodes=43_471, edges=162_088, attributes=29)

SOURCES: Mapping[str, tuple[Source, ...]] = {
    "digits": (Digits(),),
    "zinc": (Zinc(),),
    "smnist": (SMNIST, Superpixels("smnist")),
    "cifar10": (CIFAR10, Superpixels("cifar10")),
    "tsp": (TSP, TourFiles(), Tours()),
    "cluster": (Cluster(), CLUSTER),
    "pattern": (PATTERN,),
    "dd": (DD,),
    "enzymes": (ENZYMES,),
    "proteins": (PROTEINS,),
}
"""The sources of each dataset, by the dataset's name; the first is taken where nothing is asked for."""


def require_dataset(name: str) -> None:
    """Refuse a name that no dataset has.

    Raises:
        DataError: no such dataset.
    """
    if name not in SOURCES:
        raise DataError(f"dataset: found {name!r}, expected one of {', '.join(SOURCES)}")


def choose_source(name: str, *, maker: str | None, raw: Path | None, seed: int | None) -> Source:
    """The source that a preparation means.

    The one called ``maker``; else the one whose files lie in ``raw``; else, where a seed is given, the one that
    draws; else the first.

    Raises:
        DataError: no such dataset, no such source of it, or no files in ``raw`` that one of several reads.
    """
    require_dataset(name)
    sources = SOURCES[name]
    if maker is not None:
        for source in sources:
            if source.maker == maker:
                return source
        raise DataError(f"{name}: found maker {maker!r}, expected {' or '.join(source.maker for source in sources)}")
    if raw is not None:
        return next((source for source in sources if source.recognises(raw)), None) or _first_reader(sources, raw)
    if seed is not None:
        return next((source for source in sources if source.drawn), sources[0])
    return sources[0]


def _first_reader(sources: tuple[Source, ...], raw: Path) -> Source:
    """The source whose error says best which files were expected; where others read files too, it names them here."""
    first, *others = [source for source in sources if not source.drawn] or sources
    if others:
        try:
            first.raw_files(raw)
        except DataError as error:
            makers = " and ".join(f"`--maker {source.maker}`" for source in others)
            raise DataError(f"{error}; {makers} looks for other files") from error
    return first
