"""Which cells face each other, what they are called, and which are bold or red."""

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_studies import Cell, gated, runs, trial, vanilla, write_study, write_used_data

from reports.compare.against_published import beside_published
from reports.compare.comparison_table import compare_tables
from reports.layout.layout_file import Selector
from reports.layout.placed import placed_entries
from reports.layout.result_table import ResultTable, build_table
from reports.layout.table_notes import DIFFERENT_DATA, OTHER_CHOICES, OTHER_SIZES, UNDECIDED
from reports.records.load import load_results
from reports.summary.labels import BACKBONE_NAMES
from reports.summary.marks import Mark
from reports.tables.tidy import render_csv
from reports.words.plain_text import plain
from study.records import TrialRecord

PLAIN, BETTER, BEST = Mark.PLAIN, Mark.BETTER, Mark.BEST


def table_of(folder: Path, cells: Sequence[Cell], tests: Sequence[Sequence[float]] | None = None) -> ResultTable:
    """The table of ``cells``, each with these test metrics on its seeds (fewer: the last seeds are missing)."""
    trials = [
        trial(cell, seed, test)
        for cell, values in zip(cells, tests or [()] * len(cells), strict=True)
        for seed, test in zip(cell["seeds"], values, strict=False)
    ]
    return build_table(load_results(write_study(folder, cells, trials)))


def shape(table: ResultTable) -> list[list[list[tuple[str, str]]]]:
    """For each block and section the rows as (left, right) names."""
    return [
        [
            [tuple(plain(entry.label) if entry else "" for entry in (row.vanilla, row.gated)) for row in section]  # type: ignore[misc]
            for section in block.sections
        ]
        for block in table.blocks
    ]


def marks(table: ResultTable) -> list[Mark]:
    return [entry.mark for entry in table.entries]


def two(values: Sequence[float], **changes: Any) -> tuple[list[Cell], list[list[float]]]:
    """A vanilla cell and gated ones of two seeds, each with one value on both."""
    cells = [vanilla("digits", "gcn", seeds=[1, 2])]
    cells += [gated("digits", "gcn", seeds=[1, 2], id=f"g{place}", **changes) for place in range(len(values) - 1)]
    return cells, [[value, value] for value in values]


def test_the_papers_rows(tmp_path: Path) -> None:
    cells = [
        vanilla("zinc", "gcn"),
        vanilla("zinc", "gated_gcn"),
        gated("zinc", "gcn"),
        gated("zinc", "gated_gcn"),
        vanilla("zinc", "gcn", 16, 500_000),
        gated("zinc", "gcn", layers=16, budget=500_000),
        vanilla("digits", "gcn"),
        gated("digits", "gcn"),
    ]
    assert shape(table_of(tmp_path, cells)) == [
        [[("GCN", "bi-GCN"), ("GatedGCN", "bi-GatedGCN")], [("GCN", "bi-GCN")]],
        [[("GCN", "bi-GCN")]],
    ]


def test_names_of_gates_and_placements(tmp_path: Path) -> None:
    placements = ["boosting", "interleaved", "dense", "2,4"]
    cells = [vanilla("zinc", "graphsage")]
    cells += [
        gated("zinc", "graphsage", placement, gate=gate)
        for gate in ("bilateral", "uniform")
        for placement in placements
    ]
    names = [
        "bi-GraphSAGE",
        "interleaved-GraphSAGE",
        "dense-GraphSAGE",
        "layers 2,4-GraphSAGE",
        "uniform-GraphSAGE",
        "uniform interleaved-GraphSAGE",
        "uniform dense-GraphSAGE",
        "uniform layers 2,4-GraphSAGE",
    ]
    # The vanilla model stands in the first row only.
    expected = [("GraphSAGE" if place == 0 else "", name) for place, name in enumerate(names)]
    assert shape(table_of(tmp_path, cells)) == [[expected]]
    assert set(BACKBONE_NAMES.values()) == {"GCN", "GraphSAGE", "GAT", "GatedGCN"}


def test_equal_names_are_told_apart_by_what_differs(tmp_path: Path) -> None:
    cells = [
        gated("zinc", "gcn", id="a", sigma_m=0.5),
        gated("zinc", "gcn", id="b", sigma_m=1.0),
        gated("zinc", "gcn", id="c", unsupervised_weight=0.0),
        gated("zinc", "gcn", "dense"),
    ]
    assert shape(table_of(tmp_path, cells))[0][0] == [
        ("", "bi-GCN (sigma_m=0.5, unsupervised weight 1)"),
        ("", "bi-GCN (sigma_m=1, unsupervised weight 1)"),
        ("", "bi-GCN (sigma_m=0.5, unsupervised weight 0)"),
        ("", "dense-GCN (sigma_m=0.5, unsupervised weight 1)"),
    ]


def test_a_fixed_and_a_searched_value_that_agree_are_told_apart_by_the_id(tmp_path: Path) -> None:
    fixed = gated("digits", "gcn", id="fixed", seeds=[1], num_clusters=8)
    searched = gated("digits", "gcn", id="searched", seeds=[1], num_clusters=None)
    trials = [*runs(fixed, [0.5]), *runs(searched, [0.6], num_clusters=8)]
    table = build_table(load_results(write_study(tmp_path / "agree", [fixed, searched], trials)))
    assert shape(table)[0][0] == [("", "bi-GCN (K=8, cell fixed)"), ("", "bi-GCN (K=8, cell searched)")]
    table = build_table(load_results(write_study(tmp_path / "open", [fixed, searched], trials[:1])))
    assert shape(table)[0][0] == [("", "bi-GCN (K=8)"), ("", "bi-GCN (K searched)")]


def test_vanilla_without_gated_and_gated_without_vanilla(tmp_path: Path) -> None:
    cells = [vanilla("zinc", "gcn"), gated("zinc", "gat"), gated("zinc", "gcn", layers=8)]
    assert shape(table_of(tmp_path, cells)) == [[[("GCN", ""), ("", "bi-GAT")], [("", "bi-GCN")]]]


def test_searched_depths_face_each_other_whatever_was_chosen(tmp_path: Path) -> None:
    plain_cell = vanilla("digits", "gcn", None, seeds=[1])
    gated_cell = gated("digits", "gcn", layers=None, seeds=[1])
    trials = [*runs(plain_cell, [0.5], layers=4), *runs(gated_cell, [0.6], layers=8)]
    table = build_table(load_results(write_study(tmp_path, [plain_cell, gated_cell], trials)))
    assert shape(table) == [[[("GCN", "bi-GCN")]]]
    assert [entry.summary.chosen.layers for entry in table.entries] == [4, 8]
    assert table.entries[1].faces == plain_cell["id"]
    (note,) = (note for note in table.notes if note.heading == OTHER_CHOICES)
    assert ["".join(map(plain, item)) for item in note.items] == ["Digits, bi-GCN: GCN (layers 8 against 4)"]
    assert note.about == (gated_cell["id"],)


def test_a_search_that_chose_the_same_depth_needs_no_note(tmp_path: Path) -> None:
    plain_cell = vanilla("digits", "gcn", None, seeds=[1])
    gated_cell = gated("digits", "gcn", layers=None, seeds=[1])
    trials = [*runs(plain_cell, [0.5], layers=8), *runs(gated_cell, [0.6], layers=8)]
    table = build_table(load_results(write_study(tmp_path, [plain_cell, gated_cell], trials)))
    assert OTHER_CHOICES not in [note.heading for note in table.notes]


def test_a_searched_depth_faces_the_fixed_one_that_it_chose(tmp_path: Path) -> None:
    shallow, deep = vanilla("digits", "gcn", 4, seeds=[1]), vanilla("digits", "gcn", 8, seeds=[1])
    searched = gated("digits", "gcn", layers=None, seeds=[1])
    trials = [*runs(shallow, [0.5]), *runs(deep, [0.5]), *runs(searched, [0.6], layers=8)]
    table = build_table(load_results(write_study(tmp_path, [shallow, deep, searched], trials)))
    assert shape(table) == [[[("GCN", "")], [("GCN", "bi-GCN")]]]


def searched_semantics() -> tuple[list[Cell], list[TrialRecord]]:
    """Two vanilla models, and a gated one that the search left with released semantics but for one setting of its own.

    What it departs in stands in no plan: another trial of it departs in nothing.
    """
    cells = [
        *(vanilla("zinc", "gcn", semantics=name, id=name, seeds=[1]) for name in ("paper", "released")),
        gated("zinc", "gcn", semantics=None, id="gated", seeds=[1]),
    ]
    chosen = [
        replace(run, semantics="released", departures='{"metric_bias": false, "clip_norm": null}')
        for run in runs(cells[2], [0.3])
    ]
    return cells, [*runs(cells[0], [0.5]), *runs(cells[1], [0.4]), *chosen]


def test_searched_semantics_are_those_that_were_chosen(tmp_path: Path) -> None:
    results = load_results(write_study(tmp_path, *searched_semantics()))
    table = build_table(results)
    assert {entry.summary.cell.id: entry.faces for entry in table.entries}["gated"] == "released"
    (placed,) = [cell for cell in placed_entries(table) if cell.name == "gated"]
    departures = {"metric_bias": False, "clip_norm": "none"}
    assert placed.fits(Selector(semantics="released", departures=departures))
    assert not placed.fits(Selector(departures={}))
    (row,) = [row for row in csv.DictReader(io.StringIO(render_csv(table))) if row["cell"] == "gated"]
    assert (row["semantics"], row["departures"]) == ("released", "clip_norm=none; metric_bias=False")
    (beside,) = [one for one in beside_published(results) if one.summary.cell.id == "gated" and one.kind == "paper"]
    assert not beside.counterpart
    assert {"metric_bias", "clip_norm"} <= {flag.setting for flag in beside.flags}


def test_fixed_widths_face_the_vanilla_model_of_their_width(tmp_path: Path) -> None:
    cells = [vanilla("zinc", "gcn", budget=None, hidden_dim=width, id=f"v{width}") for width in (70, 90)]
    cells += [gated("zinc", "gcn", budget=None, hidden_dim=width, id=f"g{width}") for width in (90, 70, 80)]
    table = table_of(tmp_path, cells)
    assert {entry.summary.cell.id: entry.faces for entry in table.entries if entry.summary.cell.id[0] == "g"} == {
        "g90": "v90",
        "g70": "v70",
        "g80": None,
    }


def test_bold_needs_a_strictly_better_mean(tmp_path: Path) -> None:
    cells, tests = two([0.5, 0.5])
    assert marks(table_of(tmp_path / "tie", cells, tests)) == [PLAIN, PLAIN]
    cells, tests = two([0.9, 0.5, 0.9])
    assert marks(table_of(tmp_path / "worse", cells, tests)) == [PLAIN, PLAIN, PLAIN]


def test_means_that_print_alike_are_compared_unrounded(tmp_path: Path) -> None:
    cells, tests = two([0.5, 0.5 + 1e-9])
    assert marks(table_of(tmp_path, cells, tests)) == [PLAIN, BEST]


def test_as_many_graphs_right_over_all_folds_are_no_better_mean(tmp_path: Path) -> None:
    """365 of 600 either way, and the means of the folds' shares differ in their last bit."""
    right = (41, 34, 32, 40, 40, 32, 44, 45, 27, 30), (47, 43, 27, 31, 33, 35, 35, 39, 43, 32)
    cells = [make("enzymes", "gcn", seeds=[41], folds=list(range(10))) for make in (vanilla, gated)]
    trials = [
        trial(cell, 41, count / 60, fold=fold)
        for cell, counts in zip(cells, right, strict=True)
        for fold, count in enumerate(counts)
    ]
    table = build_table(load_results(write_study(tmp_path, cells, trials)))
    means = [entry.summary.test.mean for entry in table.entries if entry.summary.test]
    assert means[0] < means[1]
    assert marks(table) == [PLAIN, PLAIN]
    (found,) = compare_tables([table])
    assert found.comparison.outcome.difference == 0.0
    assert not found.comparison.favours_gated


def test_the_best_is_red_and_the_merely_better_bold(tmp_path: Path) -> None:
    cells, tests = two([0.5, 0.7, 0.6, 0.4])
    assert marks(table_of(tmp_path, cells, tests)) == [PLAIN, BEST, BETTER, PLAIN]


def test_equal_bests_are_all_red(tmp_path: Path) -> None:
    cells, tests = two([0.5, 0.7, 0.7])
    assert marks(table_of(tmp_path, cells, tests)) == [PLAIN, BEST, BEST]


def test_a_smaller_error_is_better(tmp_path: Path) -> None:
    cells = [
        vanilla("zinc", "gcn", seeds=[1, 2]),
        gated("zinc", "gcn", seeds=[1, 2]),
        gated("zinc", "gcn", "dense", seeds=[1, 2]),
    ]
    assert marks(table_of(tmp_path, cells, [[0.4, 0.4], [0.3, 0.3], [0.5, 0.5]])) == [PLAIN, BEST, PLAIN]


def twice(*values: float) -> list[list[float]]:
    return [[value, value] for value in values]


def test_red_is_the_best_over_all_depths(tmp_path: Path) -> None:
    cells = [vanilla("digits", "gcn", seeds=[1, 2]), gated("digits", "gcn", seeds=[1, 2])]
    cells += [vanilla("digits", "gcn", 16, seeds=[1, 2]), gated("digits", "gcn", layers=16, seeds=[1, 2])]
    assert marks(table_of(tmp_path / "bi", cells, twice(0.5, 0.6, 0.6, 0.7))) == [
        PLAIN,
        BETTER,
        PLAIN,
        BEST,
    ]
    # A deep vanilla model is the best: nothing is red.
    assert marks(table_of(tmp_path / "no", cells, twice(0.5, 0.6, 0.9, 0.7))) == [
        PLAIN,
        BETTER,
        PLAIN,
        PLAIN,
    ]


def test_a_uniform_gate_can_be_bold_but_not_red(tmp_path: Path) -> None:
    cells = [vanilla("digits", "gcn", seeds=[1, 2]), gated("digits", "gcn", seeds=[1, 2])]
    cells += [gated("digits", "gcn", seeds=[1, 2], gate="uniform")]
    assert marks(table_of(tmp_path / "best", cells, twice(0.5, 0.6, 0.7))) == [PLAIN, BETTER, BETTER]
    assert marks(table_of(tmp_path / "tied", cells, twice(0.5, 0.7, 0.7))) == [PLAIN, BETTER, BETTER]
    assert marks(table_of(tmp_path / "less", cells, twice(0.5, 0.7, 0.6))) == [PLAIN, BEST, BETTER]


def test_of_single_runs_nothing_is_marked(tmp_path: Path) -> None:
    """A spread is what a difference is judged by, and one run has none."""
    cells = [vanilla("zinc", "gcn", seeds=[1]), gated("zinc", "gcn", seeds=[1])]
    table = table_of(tmp_path, cells, [[0.4], [0.3]])
    assert marks(table) == [PLAIN, PLAIN]
    assert all(entry.summary.test is not None and entry.summary.test.std is None for entry in table.entries)


def test_incomplete_cells_are_neither_marked_nor_compared(tmp_path: Path) -> None:
    cells, _ = two([0.5, 0.5, 0.5])
    assert marks(table_of(tmp_path / "bi", cells, [[0.5, 0.5], [0.9], [0.7, 0.7]])) == [PLAIN, PLAIN, BEST]
    # Without the vanilla model's second seed nothing is bold; the best of the two complete models is still red.
    assert marks(table_of(tmp_path / "vanilla", cells, [[0.1], [0.6, 0.6], [0.7, 0.7]])) == [PLAIN, PLAIN, BEST]


def test_the_only_complete_model_is_not_the_best_of_anything(tmp_path: Path) -> None:
    cells, _ = two([0.5, 0.5])
    assert marks(table_of(tmp_path, cells, [[], [0.9, 0.9]])) == [PLAIN, PLAIN]


def test_a_gate_that_the_search_turned_down_is_not_marked(tmp_path: Path) -> None:
    plain_cell = vanilla("digits", "gcn", seeds=[1])
    searched = gated("digits", "gcn", None, seeds=[1], gate=None, num_clusters=None, sigma_m=None)
    trials = [*runs(plain_cell, [0.5]), *runs(searched, [0.9], placement="none")]
    table = build_table(load_results(write_study(tmp_path, [plain_cell, searched], trials)))
    assert shape(table) == [[[("GCN", "GCN")]]]
    assert marks(table) == [PLAIN, PLAIN]


def test_a_gate_that_the_search_turned_down_has_no_part_in_the_name(tmp_path: Path) -> None:
    """K, an arm, was searched in neither, and where no layer is gated there is none."""
    cells = [
        gated("digits", "gcn", None, id=f"K{clusters}", seeds=[1], gate=None, num_clusters=clusters, sigma_m=None)
        for clusters in (4, 9)
    ]
    turned_down = [replace(run, num_clusters=None) for run in runs(cells[0], [0.9], placement="none")]
    chosen = runs(cells[1], [0.8], placement="boosting", gate="uniform")
    table = build_table(load_results(write_study(tmp_path, cells, [*turned_down, *chosen])))
    assert shape(table) == [[[("", "GCN"), ("", "uniform-GCN (K=9)")]]]


def test_a_width_solved_from_the_budget_is_not_part_of_a_name(tmp_path: Path) -> None:
    cells = [gated("digits", "gcn", id=f"k{count}", seeds=[1], num_clusters=count) for count in (8, 16)]
    trials = [trial(cell, 1, 0.5, hidden_dim=width) for cell, width in zip(cells, (70, 69), strict=True)]
    table = build_table(load_results(write_study(tmp_path, cells, trials)))
    assert shape(table) == [[[("", "bi-GCN (K=8)"), ("", "bi-GCN (K=16)")]]]


def test_a_gated_model_faces_the_vanilla_one_that_departs_as_it_does(tmp_path: Path) -> None:
    mean, symmetric = vanilla("zinc", "gcn", id="mean"), vanilla("zinc", "gcn", id="symmetric")
    symmetric["departures"] = {"gcn_normalisation": "symmetric"}
    assert shape(table_of(tmp_path, [mean, symmetric, gated("zinc", "gcn")]))[0][0] == [
        ("GCN", "bi-GCN"),
        ("GCN (gcn normalisation symmetric)", ""),
    ]


def test_a_departure_of_all_equal_names_is_not_part_of_them(tmp_path: Path) -> None:
    cells = [
        vanilla("zinc", "gcn", id="one", departures={"metric_bias": True}),
        vanilla("zinc", "gcn", id="both", departures={"metric_bias": True, "gcn_normalisation": "symmetric"}),
    ]
    assert shape(table_of(tmp_path, cells))[0][0] == [("GCN", ""), ("GCN (gcn normalisation symmetric)", "")]


def test_a_gated_model_faces_the_vanilla_one_of_its_semantics(tmp_path: Path) -> None:
    paper, released = vanilla("zinc", "gcn", id="p", semantics="paper"), gated("zinc", "gcn", semantics="released")
    assert shape(table_of(tmp_path / "other", [paper, released]))[0][0] == [("GCN", ""), ("", "bi-GCN")]
    both = [paper, vanilla("zinc", "gcn", id="r", semantics="released"), released]
    assert shape(table_of(tmp_path / "both", both))[0][0] == [
        ("GCN (semantics paper)", ""),
        ("GCN (semantics released)", "bi-GCN"),
    ]
    unknown = vanilla("zinc", "gcn", id="unknown")
    assert shape(table_of(tmp_path / "unknown", [unknown, released]))[0][0] == [("GCN", "bi-GCN")]


def test_a_gated_model_faces_the_vanilla_one_with_its_encodings(tmp_path: Path) -> None:
    cells = [vanilla("zinc", "gcn", id=f"pe{size}", pos_enc_dim=size) for size in (0, 8)]
    gate = gated("zinc", "gcn", pos_enc_dim=8)
    assert shape(table_of(tmp_path, [*cells, gate]))[0][0] == [
        ("GCN (pos enc dim 0)", ""),
        ("GCN (pos enc dim 8)", "bi-GCN"),
    ]


def of_precision(cell: Cell, precision: str, **others: Any) -> Cell:
    return {**cell, "id": f"{cell['id']}-{precision}", "other_settings": {"precision": precision, **others}}


def test_a_width_that_a_budget_happens_to_give_decides_for_no_vanilla_model(tmp_path: Path) -> None:
    """GAT of 8 layers and 100,000 parameters on ZINC: 13 wide, with encodings 12, and with a gate 12 either way."""
    cells = [
        make("zinc", "gat", id=f"{make.__name__}{e}", pos_enc_dim=e) for e in (None, 8) for make in (vanilla, gated)
    ]
    trials = [
        record
        for cell, width in zip(cells, (13, 12, 12, 12), strict=True)
        for record in runs(cell, (0.5,) * 4, hidden_dim=width)
    ]
    table = build_table(load_results(write_study(tmp_path, cells, trials)))
    faces = {entry.summary.cell.id: entry.faces for entry in table.entries}
    assert faces == {"vanillaNone": None, "gatedNone": "vanillaNone", "vanilla8": None, "gated8": "vanilla8"}


def test_a_gated_model_faces_the_vanilla_one_of_its_other_settings(tmp_path: Path) -> None:
    models = [
        of_precision(make("zinc", "gcn", seeds=[1, 2]), precision, readout="mean")
        for make in (vanilla, gated)
        for precision in ("float32", "bfloat16")
    ]
    # 0.4 is worse than the 0.3 that it faces, and better than the 0.5 that it does not; 0.45 is better than that.
    table = table_of(tmp_path, models, [[0.3, 0.3], [0.5, 0.5], [0.4, 0.4], [0.45, 0.45]])
    assert shape(table)[0][0] == [
        ("GCN (precision float32)", "bi-GCN (precision float32)"),
        ("GCN (precision bfloat16)", "bi-GCN (precision bfloat16)"),
    ]
    assert marks(table) == [PLAIN, PLAIN, PLAIN, BETTER]
    assert [entry.faces for entry in table.entries if entry.faces] == [cell["id"] for cell in models[:2]]


def test_other_settings_tell_models_apart_whose_searches_chose_other_values(tmp_path: Path) -> None:
    cells = [of_precision(gated("zinc", "gcn", num_clusters=None, seeds=[1]), name) for name in ("float32", "bfloat16")]
    trials = [trial(cell, 1, 0.5, num_clusters=count) for cell, count in zip(cells, (8, 5), strict=True)]
    table = build_table(load_results(write_study(tmp_path, cells, trials)))
    assert shape(table) == [[[("", "bi-GCN (K=8, precision float32)"), ("", "bi-GCN (K=5, precision bfloat16)")]]]


def test_departures_of_gates_alone_do_not_hide_the_vanilla_model(tmp_path: Path) -> None:
    symmetric = {"gcn_normalisation": "symmetric"}
    cells = [
        vanilla("zinc", "gcn", id="mean"),
        vanilla("zinc", "gcn", id="symmetric", departures=symmetric),
        gated("zinc", "gcn", id="g", departures={"metric_bias": True}),
        gated("zinc", "gcn", id="s", departures={"metric_bias": True, **symmetric}),
    ]
    assert [entry.faces for entry in table_of(tmp_path, cells).entries if entry.faces] == ["mean", "symmetric"]


def test_of_a_plan_without_other_settings_no_model_is_told_apart_by_them(tmp_path: Path) -> None:
    older = [vanilla("zinc", "gcn"), gated("zinc", "gcn")]
    table = table_of(tmp_path, older)
    assert shape(table)[0][0] == [("GCN", "bi-GCN")]
    assert {entry.summary.cell.other_settings for entry in table.entries} == {None}


@pytest.mark.parametrize(
    ("title", "train", "told"),
    [
        ("ZINC", 1_000, ["ZINC: 1,200 graphs (train 1,000, val 100, test 100), where the paper has 12,000"]),
        ("ZINC", 11_800, []),
        ("Digits", 1_000, []),  # which the paper has not
    ],
)
def test_data_of_another_size_than_the_papers_is_told_below_the_table(
    tmp_path: Path, title: str, train: int, told: list[str]
) -> None:
    cells = [vanilla(title.lower(), "gcn"), gated(title.lower(), "gcn")]
    write_study(tmp_path, cells, [record for cell in cells for record in runs(cell, [0.5] * 4)])
    results = load_results(write_used_data(tmp_path, title, train=train, val=100, test=100))
    noted = [note for note in build_table(results).notes if note.heading == OTHER_SIZES]
    assert [plain(part) for note in noted for item in note.items for part in item] == told


def test_the_size_of_data_that_was_prepared_anew_since_is_not_told(tmp_path: Path) -> None:
    """Its trials stay on record as superseded, and no number in the table is of them."""
    cell = vanilla("zinc", "gcn", seeds=[41])
    (now,) = runs(cell, [0.5])
    before = replace(now, key="before", status="superseded", started_at=1.0)
    write_study(tmp_path, [cell], [before, replace(now, data_fingerprint="ee")])
    write_used_data(tmp_path, "ZINC", train=1_000, val=100, test=100)
    table = build_table(load_results(tmp_path))
    assert [entry.summary.data for entry in table.entries] == ["ee"]
    assert OTHER_SIZES not in [note.heading for note in table.notes]


def test_models_on_different_data_are_told_and_neither_bold_nor_red(tmp_path: Path) -> None:
    """As of two studies in one table, of which one prepared its data from another seed."""
    cells = [vanilla("enzymes", "gcn"), gated("enzymes", "gcn"), gated("enzymes", "gcn", "dense")]
    trials = [record for cell, test in zip(cells, (0.5, 0.6, 0.7), strict=True) for record in runs(cell, [test] * 4)]
    same = build_table(load_results(write_study(tmp_path / "same", cells, trials)))
    assert marks(same) == [PLAIN, BETTER, BEST]
    assert DIFFERENT_DATA not in [note.heading for note in same.notes]
    other = [replace(record, data_fingerprint="ee") if record.test_metric == 0.7 else record for record in trials]
    table = build_table(load_results(write_study(tmp_path / "other", cells, other)))
    assert marks(table) == [PLAIN, BETTER, PLAIN]
    (note,) = (note for note in table.notes if note.heading == DIFFERENT_DATA)
    assert note.items == (("ENZYMES: 0f (2 models) and ee (1 model)",),)
    assert note.about == ("enzymes",)


def test_models_on_different_folds_are_told_and_neither_bold_nor_red(tmp_path: Path) -> None:
    """Graphs of two folds may be easier than those of all."""
    cells = [vanilla("enzymes", "gcn", seeds=[41], folds=[0, 1, 2]), gated("enzymes", "gcn", seeds=[41], folds=[0, 1])]
    trials = [trial(cell, 41, 0.9 - 0.2 * fold, fold=fold) for cell in cells for fold in cell["folds"]]
    table = build_table(load_results(write_study(tmp_path, cells, trials)))
    assert marks(table) == [PLAIN, PLAIN]
    (note,) = (note for note in table.notes if note.heading == DIFFERENT_DATA)
    assert note.items == (("ENZYMES: 0f, folds 0, 1, 2 (1 model) and 0f, folds 0, 1 (1 model)",),)


def test_of_a_study_that_kept_nothing_of_its_data_nothing_is_told(tmp_path: Path) -> None:
    table = table_of(tmp_path, [vanilla("zinc", "gcn", seeds=[1])], [[0.5]])
    assert OTHER_SIZES not in [note.heading for note in table.notes]


def test_a_gated_model_that_faces_none_of_several_is_told_below_the_table(tmp_path: Path) -> None:
    several = [vanilla("zinc", "gcn", id=name, other_settings={"readout": name}) for name in ("mean", "sum")]
    between = gated("zinc", "gcn", other_settings={"readout": "max"})
    cells = [*several, between, gated("zinc", "gat"), vanilla("tsp", "gat")]
    table = table_of(tmp_path, cells)
    (note,) = (note for note in table.notes if note.heading == UNDECIDED)
    # GAT has no vanilla model on ZINC: that is seen.
    assert [[plain(part) for part in item] for item in note.items] == [["ZINC, ", "bi-GCN"]]
    assert note.about == (between["id"],)
