"""A table in the shape of a layout file: its places filled with our cells, or with printed rows of the paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reports.grid import Column, Grid, Section
from reports.layout.columns import shortest
from reports.layout.layout_file import Block, ColumnName, Layout, Selector
from reports.layout.placed import SELECTED_BY, Placed, expected_label
from reports.published.rows import paper_datasets
from reports.records.plan import ResultsError
from reports.summary.summarise import Spread
from reports.words.plain_text import settings_text
from reports.words.prose import METRIC_NAMES, Marked, Note, Part, Text
from reports.words.units import scale_of

EM_DASH = "—"
"""What stands where there is no result."""

_HEADS = {"model": "Model", "layers": "L", "params": "Params", "test": "Test", "train": "Train", "epochs": "Epochs"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Place:
    """Where a cell stands, or would stand: ``cell`` is None where there is none. ``asked``: what selects it."""

    asked: tuple[Selector, ...]
    cell: Placed | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Filled:
    """A layout and what stands in it.

    Attributes:
        blocks: for each block and each of its sections, rows of one place a side.
        left: the cells without a place, in their order.
    """

    layout: Layout
    blocks: tuple[tuple[tuple[tuple[Place, ...], ...], ...], ...]
    left: tuple[Placed, ...]

    @property
    def cells(self) -> tuple[Placed, ...]:
        """The cells that stand in it, in the order of reading, each once."""
        return tuple(dict.fromkeys(cell for sections in self.blocks for cell in _cells_of(sections)))


def fill(layout: Layout, cells: Sequence[Placed]) -> Filled:
    """``cells`` in the places of ``layout``; where several fit a place, the first of those with fewest departures.

    Raises:
        ResultsError: none of the cells has a place, or a block holds several metrics.
    """
    blocks = tuple(_fill_block(layout, block, cells) for block in layout.blocks)
    taken = {cell for sections in blocks for cell in _cells_of(sections)}
    if not taken:
        raise ResultsError(
            f"layout {layout.name}: none of the results has a place in it; {_there_are(cells)}; "
            f"it asks for {_asked(layout)}"
        )
    for block, sections in zip(layout.blocks, blocks, strict=True):
        metrics = sorted({cell.metric for cell in _cells_of(sections)})
        if len(metrics) > 1:
            raise ResultsError(
                f"layout {layout.name}: the block of {block.dataset} holds cells of several metrics "
                f"({', '.join(metrics)}); name one with the block's key metric"
            )
    return Filled(layout=layout, blocks=blocks, left=tuple(cell for cell in cells if cell not in taken))


def lay_out(filled: Filled, caption: Text, notes: Sequence[Note] = (), are_counted: bool = True) -> Grid:
    """The table: a place without results is an em dash, and cells without a place are listed in a note.

    ``are_counted`` says whether the marks of the table depend on those cells; where they do not, none is listed.
    """
    layout = filled.layout
    return Grid(
        name=layout.name,
        title=layout.title,
        caption=caption,
        columns=_columns(layout),
        sections=tuple(
            section
            for block, sections in zip(layout.blocks, filled.blocks, strict=True)
            for section in _sections(layout, block, sections)
        ),
        notes=(*notes, *(_left_over(filled.left, "test" in layout.columns) if are_counted else ())),
        nothing="No row.",
        wide=False,
        record_fields=RECORD_FIELDS,
        records=tuple(map(_record, filled.cells)),
    )


def spread_words(spread: Spread, metric: str, digits: int) -> str:
    """``mean ± std`` in the unit of print; a mean of 100 or more has one decimal less, as in the paper."""
    scale = scale_of(metric)
    mean = scale * spread.mean
    fewer = 1 if round(mean, digits) >= 100 and digits else 0
    words = f"{mean:.{digits - fewer}f}"
    return words if spread.std is None else f"{words} ± {scale * spread.std:.{digits}f}"


def _fill_block(layout: Layout, block: Block, cells: Sequence[Placed]) -> tuple[tuple[tuple[Place, ...], ...], ...]:
    of_block = Selector(dataset=block.dataset, metric=block.metric)
    candidates = [cell for cell in cells if cell.fits(of_block)]
    return tuple(
        tuple(tuple(_place(candidates, of_block, side, row) for side in layout.sides) for row in rows)
        for rows in block.sections
    )


def _place(cells: Sequence[Placed], *asked: Selector) -> Place:
    fitting = [cell for cell in cells if cell.fits(*asked)]
    return Place(asked=asked, cell=min(fitting, key=lambda cell: len(cell.values["departures"]), default=None))


def _cells_of(sections: Sequence[Sequence[Sequence[Place]]]) -> Iterator[Placed]:
    return (place.cell for rows in sections for row in rows for place in row if place.cell)


def _asked(layout: Layout) -> str:
    """The datasets and backbones that a layout names."""
    rows = (row for block in layout.blocks for rows in block.sections for row in rows)
    backbones = dict.fromkeys(row.backbone for row in (*layout.sides, *rows) if row.backbone)
    datasets = dict.fromkeys(block.dataset for block in layout.blocks)
    return f"the datasets {', '.join(datasets)}" + (f" with {', '.join(backbones)}" if backbones else "")


def _there_are(cells: Sequence[Placed]) -> str:
    if not cells:
        return "there is no result at all"
    values = [
        f"{name} {value}" for name, value in cells[0].values.items() if value is not None and name != "departures"
    ]
    return f"there are {len(cells)} cells, the first of {', '.join(values)}"


def _sections(layout: Layout, block: Block, sections: Sequence[Sequence[Sequence[Place]]]) -> Iterator[Section]:
    first = next(_cells_of(sections), None)
    metric = block.metric or (first.metric if first else None)
    title = block.title or (first.dataset_title if first else _papers_name(block.dataset))
    words = f" {METRIC_NAMES[metric]}" if metric else ""
    heads = tuple(
        _HEADS[name] + (words if name in ("test", "train") else "")
        for side in range(len(layout.sides))
        for name in _columns_of_side(layout, side)
    )
    for number, rows in enumerate(sections):
        filled = tuple(_row(layout, row) for row in rows)
        yield Section(title=title, rows=filled, heads=heads) if number == 0 else Section(title=None, rows=filled)


def _papers_name(dataset: str) -> str:
    names = {row.dataset.casefold(): row.dataset for row in paper_datasets()}
    return names.get(dataset.casefold(), dataset)


def _columns(layout: Layout) -> tuple[Column, ...]:
    return tuple(
        Column(
            head=_HEADS[name],
            align="left" if name == "model" else "centre" if name in ("test", "train") else "right",
            apart=side > 0 and place == 0,
        )
        for side in range(len(layout.sides))
        for place, name in enumerate(_columns_of_side(layout, side))
    )


def _columns_of_side(layout: Layout, side: int) -> tuple[ColumnName, ...]:
    return tuple(name for name in layout.columns if not (layout.model_once and side and name == "model"))


def _row(layout: Layout, row: Sequence[Place]) -> tuple[Text, ...]:
    named = next((place for place in row if place.cell), row[0])
    return tuple(
        _cell(layout, name, named if layout.model_once and name == "model" else place)
        for side, place in enumerate(row)
        for name in _columns_of_side(layout, side)
    )


def _cell(layout: Layout, column: ColumnName, place: Place) -> Text:
    cell = place.cell
    if cell is None:
        return (_expected(column, place),)
    match column:
        case "model":
            return (cell.label,)
        case "layers":
            return (_whole(cell.values["layers"]),)
        case "params":
            return (_whole(cell.params),)
        case "epochs":
            return (EM_DASH if cell.last_epoch is None else shortest(cell.last_epoch),)
        case "train":
            return (EM_DASH if cell.train is None else spread_words(cell.train, cell.metric, layout.digits),)
    if cell.test is None:
        return (EM_DASH,)
    lacking = f" ({cell.finished}/{cell.asked})" if cell.finished < cell.asked else ""
    return (Marked(words=spread_words(cell.test, cell.metric, layout.digits), mark=cell.mark), lacking)


def _expected(column: ColumnName, place: Place) -> Part:
    """What a place without results says: which model it is for."""
    if column == "model":
        return expected_label(*place.asked) or EM_DASH
    layers = next((selector.layers for selector in place.asked if selector.layers is not None), None)
    return _whole(layers) if column == "layers" else EM_DASH


def _whole(number: int | None) -> str:
    return EM_DASH if number is None else str(number)


def _left_over(left: Sequence[Placed], are_marked: bool) -> tuple[Note, ...]:
    items: tuple[Text, ...] = tuple((f"{cell.dataset_title}, ", cell.label, *where(cell)) for cell in left)
    counted = " (its marks count them too)" if are_marked else ""
    heading = f"Among the results, but without a place in this table{counted}:"
    return (Note(heading=heading, items=items),) if items else ()


def where(cell: Placed) -> Iterator[str]:
    """What beside its label says which cell it is."""
    for key, name in (("layers", "L"), ("budget", "budget")):
        if cell.values[key] is not None:
            yield f", {name} {cell.values[key]}"


RECORD_FIELDS = (
    *("cell", "model", *SELECTED_BY, "params", "n", "n_asked"),
    *("test_mean", "test_std", "train_mean", "train_std", "last_epoch", "mark"),
)
"""Columns of the CSV, a row a cell; metrics as unrounded fractions."""


def _record(cell: Placed) -> dict[str, object]:
    departures = settings_text(cell.values["departures"].items())
    values = (
        *(cell.name, f"{cell.label.prefix}-{cell.label.name}" if cell.label.prefix else cell.label.name),
        *(departures if name == "departures" else cell.values[name] for name in SELECTED_BY),
        *(cell.params, cell.finished, cell.asked),
        *((cell.test.mean, cell.test.std) if cell.test else (None, None)),
        *((cell.train.mean, cell.train.std) if cell.train else (None, None)),
        *(cell.last_epoch, cell.mark.value),
    )
    return dict(zip(RECORD_FIELDS, values, strict=True))
