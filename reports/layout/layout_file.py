"""Layout files: which cells make which table, in which rows, side by side or one below the other.

The shipped ones, ``shipped/*.yaml``, give the paper's tables their shape; a file of a user's own has the same format,
which docs/tables.md describes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

ColumnName = Literal["model", "layers", "params", "test", "train", "epochs"]
DatasetColumn = Literal["task", "dataset", "graphs", "nodes", "edges", "node_features", "edge_features"]
Metric = Literal["mae", "accuracy", "balanced_accuracy", "f1"]
PublishedTable = Literal["graph_level", "node_edge_level", "placement", "small"]

RESERVED = ("results", "comparisons", "published", "statistics")
"""Names of the files that the command writes besides; a layout would overwrite them."""

LONGEST_NAME = 200
"""Characters of a layout's name: a disk takes 255 of a file's, to which endings are added, also while it is written."""


def _name(name: str) -> str:
    if name in RESERVED or name.endswith("_standalone"):
        raise PydanticCustomError("taken", "another name: files of this name are written besides")
    return name


def _each_once(values: Sequence[Any]) -> Sequence[Any]:
    doubled = [value for value, count in Counter(values).items() if count > 1]
    if doubled:
        raise PydanticCustomError("doubled", "each once: {value} stands twice", {"value": doubled[0]})
    return values


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$", max_length=LONGEST_NAME), AfterValidator(_name)]
Words = Annotated[str, Field(pattern=r"\S")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Selector(_Strict):
    """What a cell must be to stand in a place; what is not said may be anything.

    Names and values are those of a study file; ``departures`` are settings that are not those of the study's semantics,
    all of them: an empty mapping asks for a cell without any.
    """

    dataset: Words | None = None
    backbone: Words | None = None
    placement: Words | None = None
    gate: Literal["bilateral", "uniform"] | None = None
    layers: int | None = None
    budget: int | None = None
    hidden_dim: int | None = None
    num_clusters: int | None = None
    sigma_m: float | None = None
    unsupervised_weight: float | None = None
    pos_enc_dim: int | None = None
    semantics: Literal["paper", "released"] | None = None
    metric: Metric | None = None
    departures: Mapping[str, str | int | float | bool] | None = None

    @property
    def wanted(self) -> dict[str, Any]:
        """What is said, by name."""
        return {name: value for name, value in self if value is not None}


class Block(_Strict):
    """Cells of one dataset and metric; between its sections stands a rule. ``title`` is the dataset's, if it has none.

    Without a ``metric`` it is that of the results.
    """

    dataset: Words
    metric: Metric | None = None
    title: Words | None = None
    sections: Annotated[tuple[Annotated[tuple[Selector, ...], Field(min_length=1)], ...], Field(min_length=1)]


class Layout(_Strict):
    """One table.

    Attributes:
        name: of its files, and of its label in LaTeX.
        title: of its caption.
        published: the table of printed numbers that ``--published`` sets in it, a file of ``reports/published``.
        columns: of each side, in order.
        digits: decimals of a metric; a mean of 100 or more has one less.
        sides: what stands side by side, from left to right.
        model_once: the model is named on the left alone.
        blocks: datasets from top to bottom.
    """

    name: Name
    title: Words
    published: PublishedTable | None = None
    columns: Annotated[tuple[ColumnName, ...], Field(min_length=1), AfterValidator(_each_once)] = (
        "model", "layers", "params", "test", "train", "epochs",
    )  # fmt: skip
    digits: Annotated[int, Field(ge=0, le=10)] = 3
    sides: Annotated[tuple[Selector, ...], Field(min_length=1)] = (Selector(),)
    model_once: bool = False
    blocks: Annotated[tuple[Block, ...], Field(min_length=1)]

    @field_validator("model_once")
    @classmethod
    def _can_be_named(cls, model_once: bool, given: Any) -> bool:
        if model_once and "model" not in given.data.get("columns", ("model",)):
            raise PydanticCustomError("nameless", "false, or a column model")
        return model_once


class DatasetLayout(_Strict):
    """A table of datasets: those of the paper's table that ``datasets`` names."""

    name: Name
    title: Words
    datasets: Literal["Table 1", "Table S2"]
    columns: Annotated[tuple[DatasetColumn, ...], Field(min_length=1), AfterValidator(_each_once)] = (
        "task", "dataset", "graphs", "nodes", "edges", "node_features", "edge_features",
    )  # fmt: skip


AnyLayout = Layout | DatasetLayout
FOLDER = Path(__file__).parent / "shipped"
