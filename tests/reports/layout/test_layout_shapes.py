"""Places of a layout: what stands in them, what stands there without results, and every format of the table."""

from __future__ import annotations

import csv
import re
from io import StringIO
from pathlib import Path

import pytest
from aggregate_command import WITHOUT, aggregate, aggregate_process, error_of
from hypothesis import given
from hypothesis import strategies as st
from latex_documents import FOREIGN, SPECIAL, names_study, pdflatex
from made_studies import Cell, gated, runs, vanilla, worked_study, write_study

from reports.grid import render_csv, render_fragment, render_html, render_markdown, render_standalone, write_grid
from reports.grid.shape import Grid
from reports.layout.laid_out import EM_DASH, fill, lay_out
from reports.layout.layout_file import Block, Layout, Selector
from reports.layout.layout_reader import find_layouts
from reports.layout.placed import Placed, placed_entries
from reports.layout.result_table import build_table
from reports.records.load import load_results
from reports.records.plan import ResultsError
from reports.summary.labels import Label
from reports.summary.marks import Mark
from reports.summary.summarise import Spread
from reports.tables.write import write_tables

GCN = Selector(backbone="gcn")
SIDES = (Selector(placement="none"), Selector(placement="boosting", gate="bilateral"))


def layout_of(*blocks: Block, **changes: object) -> Layout:
    return Layout.model_validate({"name": "mine", "title": "Mine", "sides": SIDES, "blocks": blocks, **changes})


def block(dataset: str, *rows: Selector, **changes: object) -> Block:
    return Block.model_validate({"dataset": dataset, "sections": (rows,), **changes})


def grid_of(folder: Path, layout: Layout, cells: list[Cell], tests: list[float]) -> Grid:
    trials = [record for cell, test in zip(cells, tests, strict=True) for record in runs(cell, [test] * 4)]
    table = build_table(load_results(write_study(folder, cells, trials)))
    return lay_out(fill(layout, placed_entries(table)), ("Words.",))


def words(grid: Grid) -> list[list[str]]:
    lines = [line for line in render_markdown(grid).splitlines() if line.startswith("| ") and ":-" not in line]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_a_place_without_results_says_which_model_it_is_for(tmp_path: Path) -> None:
    layout = layout_of(
        block("zinc", GCN, Selector(backbone="gat", layers=16), Selector(layers=4)),
        block("smnist", Selector(backbone="my.layers:Own")),
    )
    assert words(grid_of(tmp_path, layout, [vanilla("zinc", "gcn")], [0.5])) == [
        ["Model", "L", "Params", "Test MAE", "Train MAE", "Epochs"] * 2,
        ["GCN", "4", "99000", "0.500 ± 0.000", "0.500 ± 0.000", "2", "*bi*-GCN", *[EM_DASH] * 5],
        ["GAT", "16", *[EM_DASH] * 4, "*bi*-GAT", "16", *[EM_DASH] * 4],
        ["GCN", "4", "99000", "0.500 ± 0.000", "0.500 ± 0.000", "2", EM_DASH, "4", *[EM_DASH] * 4],
        ["Model", "L", "Params", "Test", "Train", "Epochs"] * 2,
        ["Own", *[EM_DASH] * 5, "*bi*-Own", *[EM_DASH] * 5],
    ]


def test_a_cell_that_was_planned_but_not_run_is_a_dash_too(tmp_path: Path) -> None:
    study = write_study(
        tmp_path, [vanilla("zinc", "gcn"), gated("zinc", "gcn")], runs(vanilla("zinc", "gcn"), [1.0] * 4)[:3]
    )
    files = write_tables(study, tmp_path / "out", layouts=[layout_of(block("zinc", GCN), columns=("model", "test"))])
    text = (tmp_path / "out" / "mine.md").read_text(encoding="utf-8")
    assert "| GCN | 1.000 ± 0.000 (3/4) | *bi*-GCN | — |\n" in text
    assert "- ZINC, GCN, L 4, budget 100000: 3 of 4 runs; seed 35 never started\n" in text
    assert [path.name for path in files.others] == [
        *("mine.tex", "mine_standalone.tex", "mine.md", "mine.csv", "mine.html")
    ]


def test_the_metric_names_the_heads_and_titles_need_no_results(tmp_path: Path) -> None:
    layout = layout_of(
        block("zinc", GCN),
        block("tsp", GCN, metric="f1"),
        block("own_data", GCN, title="Own & more"),
        block("OWN", GCN),
    )
    grid = grid_of(tmp_path, layout, [vanilla("zinc", "gcn", dataset_title="Zn")], [0.5])
    assert [(section.title, (section.heads or ())[3]) for section in grid.sections] == [
        *(("Zn", "Test MAE"), ("TSP", "Test F1"), ("Own & more", "Test"), ("OWN", "Test"))
    ]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, "plain"),
        ({"num_clusters": 16}, "sixteen"),
        ({"sigma_m": 0.1}, "wide"),
        ({"sigma_m": 1}, None),
        ({"hidden_dim": 145}, "fixed"),
        ({"budget": 500_000}, "deep"),
        ({"layers": 16}, "deep"),
        ({"departures": {"readout": "sum", "batch_size": 64, "residual": True}}, "departing"),
        ({"departures": {"readout": "sum"}}, None),
        ({"departures": {}, "num_clusters": 3}, None),
        ({"metric": "accuracy"}, None),
        ({"dataset": "ZINC", "backbone": "GCN"}, "plain"),
        ({"unsupervised_weight": 0.25}, "light"),
        ({"semantics": "released"}, "released"),
        ({"semantics": "paper"}, None),
        ({"pos_enc_dim": 4}, "encoded"),
    ],
)
def test_cells_are_selected_by_every_setting(tmp_path: Path, asked: dict[str, object], found: str | None) -> None:
    """Of those that fit, the first with the fewest departures."""
    departures = {"readout": "sum", "batch_size": 64, "residual": True}
    cells = [
        gated("zinc", "gcn", id="departing", num_clusters=3, departures=departures),
        gated("zinc", "gcn", id="plain"),
        gated("zinc", "gcn", id="sixteen", num_clusters=16),
        gated("zinc", "gcn", id="wide", sigma_m=0.1),
        gated("zinc", "gcn", id="light", unsupervised_weight=0.25),
        gated("zinc", "gcn", id="fixed", budget=None, hidden_dim=145),
        gated("zinc", "gcn", id="deep", layers=16, budget=500_000),
        gated("zinc", "gcn", id="released", semantics="released"),
        gated("zinc", "gcn", id="encoded", pos_enc_dim=4),
    ]  # fmt: skip
    study = load_results(write_study(tmp_path, cells, []))
    layout = layout_of(block("zinc", Selector.model_validate(asked)), block("zinc", Selector()))
    filled = fill(layout, placed_entries(build_table(study)))
    place = filled.blocks[0][0][0][1]
    assert (place.cell.name if place.cell else None) == found


def test_arms_of_any_kind_stand_side_by_side(tmp_path: Path) -> None:
    sides = tuple(Selector(num_clusters=number) for number in (4, 8, 16))
    cells = [gated("zinc", "gcn", id=str(number), num_clusters=number) for number in (16, 4, 8)]
    layout = layout_of(block("zinc", GCN), sides=sides, columns=("test",), digits=1)
    assert words(grid_of(tmp_path, layout, cells, [0.16, 0.4, 0.8])) == [
        ["Test MAE"] * 3,
        ["0.4 ± 0.0", "0.8 ± 0.0", "**0.2 ± 0.0** (best)"],
    ]


def test_marks_are_those_of_all_results_and_cells_without_a_place_are_named(tmp_path: Path) -> None:
    cells = [vanilla("zinc", "gcn"), gated("zinc", "gcn"), gated("zinc", "gat"), vanilla("tsp", "gcn")]
    grid = grid_of(tmp_path, layout_of(block("zinc", GCN), columns=("test",)), cells, [0.5, 0.4, 0.3, 0.9])
    assert words(grid)[1] == ["0.500 ± 0.000", "**0.400 ± 0.000**"]
    (note,) = grid.notes
    assert note.heading == "Among the results, but without a place in this table (its marks count them too):"
    assert [item[0] for item in note.items] == ["ZINC, ", "TSP, "]
    assert "- ZINC, *bi*-GAT, L 4, budget 100000\n" in render_markdown(grid)


def test_one_block_holds_one_metric() -> None:
    cells = [placed("a", metric="mae", backbone="gcn"), placed("b", metric="f1", backbone="gat")]
    layout = layout_of(block("zinc", GCN, Selector(backbone="gat")), sides=(Selector(),))
    with pytest.raises(ResultsError, match=r"the block of zinc holds cells of several metrics \(f1, mae\); name one"):
        fill(layout, cells)
    one = layout_of(block("zinc", GCN, Selector(backbone="gat"), metric="f1"), sides=(Selector(),))
    assert [cell.name for cell in fill(one, cells).left] == ["a"]


def test_a_layout_that_selects_nothing_says_what_there_is() -> None:
    layout = layout_of(block("zinc", GCN))
    with pytest.raises(ResultsError, match=r"mine: none of the results has a place in it; there is no result at all"):
        fill(layout, [])
    with pytest.raises(
        ResultsError, match="there are 2 cells, the first of dataset tsp, backbone gat, placement none,"
    ):
        fill(layout, [placed("a", dataset="tsp", backbone="gat"), placed("b", dataset="tsp", backbone="gcn")])


def placed(name: str, metric: str = "mae", **values: object) -> Placed:
    empty = dict.fromkeys(Selector.model_fields)
    return Placed(
        name=name, label=Label(prefix=None, name=name), dataset_title=name, metric=metric, mark=Mark.BEST, params=1,
        values={**empty, "dataset": "zinc", "placement": "none", "departures": {}, "metric": metric, **values},
        finished=1, asked=1, test=Spread(mean=0.1, std=0.0), train=None, last_epoch=1.0,
    )  # fmt: skip


@given(st.lists(st.sampled_from(["gcn", "gat", "graphsage"]), min_size=1), st.lists(st.integers(1, 3), min_size=1))
def test_every_cell_stands_in_a_place_or_in_the_note(backbones: list[str], depths: list[int]) -> None:
    cells = [
        placed(f"{backbone}{depth}{place}", backbone=backbone, layers=depth)
        for place, (backbone, depth) in enumerate(zip(backbones, depths, strict=False))
    ]
    layout = layout_of(
        block("zinc", GCN, Selector(backbone="gat")), sides=(Selector(layers=1), Selector(layers=2)), columns=("model",)
    )
    fitting = [cell for cell in cells if cell.values["backbone"] != "graphsage" and cell.values["layers"] != 3]
    if not fitting:
        with pytest.raises(ResultsError):
            fill(layout, cells)
        return
    filled = fill(layout, cells)
    assert sorted(cell.name for cell in (*filled.cells, *filled.left)) == sorted(cell.name for cell in cells)
    kinds = {(cell.values["backbone"], cell.values["layers"]) for cell in fitting}
    assert len(filled.cells) == len(kinds)
    text = render_markdown(lay_out(filled, ("",)))
    assert all(cell.name in text for cell in cells)


@given(st.text(max_size=20))
def test_any_name_can_stand_in_any_format(name: str) -> None:
    layout = layout_of(block("zinc", Selector(), title="x" + name), sides=(Selector(),))
    grid = lay_out(fill(layout, [placed(name, backbone=name)]), (name,))
    assert render_fragment(grid).isascii()
    assert render_html(grid).count("<tr") == 3
    assert next(csv.DictReader(StringIO(render_csv(grid), newline="")))["mark"] == "best"


def test_layouts_with_names_of_every_kind_compile(tmp_path: Path) -> None:
    study = names_study(tmp_path / "study")
    names = {"dataset": f"d{SPECIAL}", "title": f"{SPECIAL} {FOREIGN}"}
    rows = (Selector(), Selector(backbone=SPECIAL))
    layout = layout_of(Block(**names, sections=(rows, rows)), block(f"{FOREIGN}", *rows), title=f"{SPECIAL} {FOREIGN}")  # type: ignore[arg-type]
    write_tables(study, tmp_path, layouts=[layout])
    log = pdflatex(tmp_path / "mine_standalone.tex")
    assert "Overfull" not in log
    text = (tmp_path / "mine.tex").read_text()
    packages = "".join(re.findall(r"\\usepackage\{\w+\}", text.splitlines()[0]))
    (tmp_path / "paper.tex").write_text(
        rf"\documentclass{{article}}{packages}\begin{{document}}\input{{mine}}\end{{document}}"
    )
    assert "Overfull" not in pdflatex(tmp_path / "paper.tex")


def test_title_and_heads_stand_on_every_page_of_a_long_layout(tmp_path: Path) -> None:
    sections = tuple(tuple(Selector(backbone=f"b{part}{row}") for row in range(15)) for part in range(6))
    layout = layout_of(Block(dataset="zinc", metric="mae", sections=sections), block("tsp", GCN))
    grid = grid_of(tmp_path, layout, [vanilla("zinc", "b00")], [0.5])
    pages = render_standalone(grid).split(r"\newpage")
    assert len(pages) > 2
    *of_zinc, last = pages
    assert all(page.count("Test MAE") == 2 and page.count("{c}{ZINC}") == 1 for page in of_zinc)
    assert (last.count("{c}{TSP}"), last.count("{c}{ZINC}")) == (1, 0)
    assert [row for page in pages for row in re.findall(r"^b\d+", page, flags=re.MULTILINE)] == [
        row.backbone for rows in sections for row in rows
    ]
    write_grid(grid, tmp_path)
    assert "Overfull" not in pdflatex(tmp_path / "mine_standalone.tex")


def test_the_papers_shape_in_latex(tmp_path: Path) -> None:
    layout = layout_of(block("zinc", GCN), block("tsp", GCN), columns=("model", "test"))
    text = render_fragment(grid_of(tmp_path, layout, [vanilla("zinc", "gcn"), gated("zinc", "gcn")], [0.5, 0.4]))
    tabular = text[text.index(r"\begin{tabular}") : text.index(r"\end{tabular}")].splitlines()
    assert tabular == [
        r"\begin{tabular}{lc@{\hspace{2em}}lc}",
        r"\toprule",
        r"\multicolumn{4}{c}{ZINC} \\",
        r"\cmidrule(lr){1-4}",
        r"Model & Test MAE & Model & Test MAE \\",
        r"\midrule",
        r"GCN & 0.500 $\pm$ 0.000 & \emph{bi}-GCN & \textcolor{red}{\textbf{0.400 $\pm$ 0.000}} \\",
        r"\midrule",
        r"\midrule",
        r"\multicolumn{4}{c}{TSP} \\",
        r"\cmidrule(lr){1-4}",
        r"Model & Test & Model & Test \\",
        r"\midrule",
        r"GCN & \textemdash{} & \emph{bi}-GCN & \textemdash{} \\",
        r"\bottomrule",
    ]


def test_the_command_lays_out_without_torch_and_the_same_way_twice(tmp_path: Path) -> None:
    study = worked_study(tmp_path / "study")
    words = ("tables", study, "--layout", "graph_level", "--bold", "significant", "--out")
    done = aggregate_process(*words, tmp_path / "first", code=WITHOUT)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{tmp_path}/first/graph_level.tex\n" in done.stdout
    assert aggregate(*words, tmp_path / "second").exit_code == 0
    first, second = (sorted((tmp_path / name).iterdir()) for name in ("first", "second"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    text = (tmp_path / "first" / "graph_level.md").read_text(encoding="utf-8")
    # 0.37 and 0.28, with standard deviations of 0.007, are far apart.
    assert "*bi*-GCN | 16 | 536482 | **0.280 ± 0.007** (best) |" in text
    assert "and only where it is bold" in text


def test_the_command_refuses_what_it_cannot_lay_out(tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", [vanilla("digits", "gcn")], [])
    assert error_of(study, "--layout", "small").startswith("error: layout small: none of the results has a place in it")
    assert not (study / "tables").exists()
    assert error_of(study, "--layout", "datasets").endswith("expected --statistics DATA or --published")
    assert error_of("--statistics", tmp_path, "--layout", "small").endswith("expected RESULTS or --published")
    own = tmp_path / "own.yaml"
    own.write_text("name: own\ntitle: Own\nblocks: [{dataset: zinc, sections: [[{}]]}]\n", encoding="utf-8")
    assert error_of("--published", "--layout", own, "--out", tmp_path / "out") == (
        "error: layout own: published: found nothing, expected the table whose printed numbers stand in it"
    )


def test_the_shipped_layouts_bear_our_results(tmp_path: Path) -> None:
    placements = ("boosting", "interleaved", "dense")
    cells = [
        vanilla("zinc", "gated_gcn"),
        *(gated("zinc", "gated_gcn", where) for where in placements),
        vanilla("zinc", "gated_gcn", 16, 500_000),
    ]
    (layout,) = find_layouts(["placement"])
    assert isinstance(layout, Layout)
    rows = words(grid_of(tmp_path, layout, cells, [0.4, 0.3, 0.35, 0.5, 0.2]))
    assert [row[0] for row in rows] == [
        *("Model", "GatedGCN", "*bi*-GatedGCN", "*interleaved*-GatedGCN", "*dense*-GatedGCN")
    ]
    assert [row[3] for row in rows[1:]] == ["0.400 ± 0.000", "**0.300 ± 0.000**", "**0.350 ± 0.000**", "0.500 ± 0.000"]
    assert [row[8] for row in rows[1:]] == ["0.200 ± 0.000", *[EM_DASH] * 3]
