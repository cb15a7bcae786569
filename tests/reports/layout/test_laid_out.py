"""Our cells in the shape of a layout, several studies as one, and marks by significance; worked out by hand."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from aggregate_command import aggregate
from made_studies import gated, runs, vanilla, write_study

from reports.layout.laid_out import spread_words
from reports.records.load import load_results
from reports.summary.marks import Mark
from reports.summary.summarise import Spread
from reports.tables.merge import merge_studies
from reports.tables.write import table_of

ZINC, BI_ZINC = vanilla("zinc", "gcn"), gated("zinc", "gcn")
SMNIST = vanilla("smnist", "gcn", dataset_title="SMNIST", metric="accuracy", direction="max")


def two_studies(folder: Path) -> tuple[Path, Path]:
    first = write_study(
        folder / "first", [ZINC, BI_ZINC], [*runs(ZINC, (0.5,) * 4), *runs(BI_ZINC, (0.4,) * 4)], study="first"
    )
    second = write_study(
        folder / "second", [ZINC, SMNIST], [*runs(ZINC, (0.3,) * 4), *runs(SMNIST, (0.9,) * 4)], study="second"
    )
    return first, second


def test_of_a_cell_in_two_studies_the_last_wins_and_a_note_says_so(tmp_path: Path) -> None:
    first, second = two_studies(tmp_path)
    _, table = table_of([first, second], "paper")
    means = {entry.summary.cell.id: entry.summary.test.mean for entry in table.entries if entry.summary.test}
    assert means == {ZINC["id"]: 0.3, BI_ZINC["id"]: 0.4, SMNIST["id"]: 0.9}
    (note,) = [note for note in table.notes if note.heading.startswith("In several")]
    assert note.items == ((f"{ZINC['id']}: of second, not of first",),)
    _, other = table_of([second, first], "paper")
    assert {entry.summary.test.mean for entry in other.entries if entry.summary.test} == {0.5, 0.4, 0.9}


def test_cells_of_one_id_that_are_not_alike_both_stay(tmp_path: Path) -> None:
    deep = {**ZINC, "layers": 16}
    first = write_study(tmp_path / "a", [ZINC], runs(ZINC, (0.5,) * 4), study="a")
    second = write_study(tmp_path / "b", [deep], runs(deep, (0.2,) * 4, layers=16), study="b")
    merged, notes = merge_studies([load_results(first), load_results(second)], ["first", "second"])
    assert [cell.id for cell in merged.plan.cells] == [ZINC["id"], f"b:{ZINC['id']}"]
    assert {trial.cell for trial in merged.trials} == {cell.id for cell in merged.plan.cells}
    assert notes == ()


def test_a_study_by_itself_is_left_as_it_is(tmp_path: Path) -> None:
    first, _ = two_studies(tmp_path)
    loaded = load_results(first)
    assert merge_studies([loaded], ["results"]) == (loaded, ())


def test_a_layout_fills_its_places_and_notes_the_rest(tmp_path: Path) -> None:
    first, second = two_studies(tmp_path)
    layout = tmp_path / "mine.yaml"
    layout.write_text(
        "name: mine\ntitle: Mine\ncolumns: [model, test]\ndigits: 2\n"
        "sides: [{placement: none}, {placement: boosting}]\n"
        "blocks: [{dataset: zinc, sections: [[{backbone: gcn}], [{backbone: gat}]]}]\n",
        encoding="utf-8",
    )
    out = tmp_path / "out"
    done = aggregate("tables", first, second, "--layout", layout, "--out", out, environment={"COLUMNS": "200"})
    assert done.exit_code == 0
    text = (out / "mine.md").read_text(encoding="utf-8")
    assert "| GCN | 0.30 ± 0.00 | *bi*-GCN | 0.40 ± 0.00 |" in text
    assert "| GAT | — | *bi*-GAT | — |" in text
    assert "- SMNIST, GCN, L 4, budget 100000\n" in text
    rows = list(csv.DictReader((out / "mine.csv").open(encoding="utf-8")))
    assert [(row["model"], row["test_mean"]) for row in rows] == [("GCN", "0.3"), ("bi-GCN", "0.4")]


def test_a_layout_without_a_place_for_any_result_is_refused(tmp_path: Path) -> None:
    first, _ = two_studies(tmp_path)
    done = aggregate("tables", first, "--layout", "small", "--out", tmp_path / "out")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "none of the results has a place in it" in done.stderr


def test_bold_by_significance(tmp_path: Path) -> None:
    """0.50 against 0.40 with spreads of 0.01 survives, 0.50 against 0.499 does not; by the mean both are bold."""
    clear, close = BI_ZINC, gated("zinc", "gcn", id="close", gate="uniform")
    trials = [
        *runs(ZINC, (0.49, 0.51, 0.50, 0.50)),
        *runs(clear, (0.39, 0.41, 0.40, 0.40)),
        *runs(close, (0.489, 0.509, 0.499, 0.499)),
    ]
    study = write_study(tmp_path, [ZINC, clear, close], trials)
    marks = {
        bold: {entry.summary.cell.id: entry.mark for entry in table_of([study], bold)[1].entries}
        for bold in ("paper", "significant")
    }
    assert marks["paper"] == {ZINC["id"]: Mark.PLAIN, clear["id"]: Mark.BEST, "close": Mark.BETTER}
    assert marks["significant"] == {ZINC["id"]: Mark.PLAIN, clear["id"]: Mark.BEST, "close": Mark.PLAIN}
    caption = "".join(part for part in table_of([study], "significant")[1].caption if isinstance(part, str))
    assert "Holm's correction over all comparisons printed together" in caption


@pytest.mark.parametrize(
    ("mean", "std", "metric", "words"),
    [
        (0.4594, 0.0061, "mae", "0.459 ± 0.006"),
        (1.0, 0.0, "accuracy", "100.00 ± 0.000"),
        (0.99999, 0.0, "accuracy", "99.999 ± 0.000"),
        (0.999999, 0.0, "accuracy", "100.00 ± 0.000"),
    ],
)
def test_numbers_as_the_paper_prints_them(mean: float, std: float, metric: str, words: str) -> None:
    assert spread_words(Spread(mean=mean, std=std), metric, 3) == words


def test_results_come_as_html_too(tmp_path: Path) -> None:
    first, _ = two_studies(tmp_path)
    assert aggregate("tables", first, "--out", tmp_path / "out").exit_code == 0
    page = (tmp_path / "out" / "results.html").read_text(encoding="utf-8")
    assert '<td class="apart"><i>bi</i>-GCN</td>' in page
    assert '<b class="best">0.400 ± 0.000</b>' in page


def laid_out(folder: Path, layout: str, *arguments: str) -> str:
    """The Markdown of a layout file's table."""
    file = folder / "layout.yaml"
    file.write_text(layout, encoding="utf-8")
    out = folder / "laid_out"
    done = aggregate("tables", *arguments, "--layout", file, "--out", out)
    assert done.exit_code == 0, done.stderr
    return (out / "mine.md").read_text(encoding="utf-8")


MINE = "name: mine\ntitle: Mine\n"
GCN_ON_ZINC = "blocks: [{dataset: zinc, sections: [[{backbone: gcn}]]}]\n"


@pytest.mark.parametrize(
    ("columns", "told", "not_told"),
    [
        ("[model, params]", ["Params: number"], ["L: number", "MAE", "Bold", "Epochs", "its marks count"]),
        ("[model, layers, epochs]", ["L: number", "Epochs: mean"], ["Params", "Mean ±", "Bold", "its marks count"]),
        ("[model, train]", ["MAE (ZINC)", "Mean ±"], ["L: number", "Params", "Bold", "Epochs", "its marks count"]),
        ("[model, test]", ["MAE (ZINC)", "Bold", "its marks count"], ["L: number", "Params", "Epochs", "ACC"]),
    ],
)
def test_words_are_of_what_the_table_holds(tmp_path: Path, columns: str, told: list[str], not_told: list[str]) -> None:
    _, second = two_studies(tmp_path)
    text = laid_out(tmp_path, f"{MINE}columns: {columns}\n{GCN_ON_ZINC}", str(second))
    assert "without a place in this table" in text
    for words in told:
        assert words in text
    for words in not_told:
        assert words not in text


def test_notes_are_of_rows_that_are_there(tmp_path: Path) -> None:
    first, second = two_studies(tmp_path)
    smnist = f"{MINE}blocks: [{{dataset: smnist, sections: [[{{backbone: gcn}}]]}}]\n"
    assert "In several of the studies" in laid_out(tmp_path, MINE + GCN_ON_ZINC, str(first), str(second))
    assert "In several of the studies" not in laid_out(tmp_path, smnist, str(first), str(second))


def test_printed_rows_that_are_left_out_are_listed_only_where_marks_count_them(tmp_path: Path) -> None:
    layout = f"{MINE}published: graph_level\n{GCN_ON_ZINC}"
    printed = laid_out(tmp_path, layout, "--published")
    assert "without a place" not in printed
    assert "ACC" not in printed
    assert "its marks count them too" in laid_out(tmp_path, layout, "--published", "--bold", "significant")


@pytest.mark.parametrize("is_searched", [False, True])
@pytest.mark.parametrize(
    ("widths", "words"),
    [((145, 145), "same backbone, layers and width"), ((145, 100), "same backbone and layers)")],
)
def test_a_budget_is_spoken_of_only_where_there_is_one(
    tmp_path: Path, widths: tuple[int, int], words: str, is_searched: bool
) -> None:
    planned = (None, None) if is_searched else widths
    base = vanilla("zinc", "gcn", budget=None, hidden_dim=planned[0])
    bi = gated("zinc", "gcn", budget=None, hidden_dim=planned[1])
    trials = [*runs(base, (0.5,) * 4, hidden_dim=widths[0]), *runs(bi, (0.4,) * 4, hidden_dim=widths[1])]
    results = write_study(tmp_path, [base, bi], trials)
    for bold in ("paper", "significant"):
        _, table = table_of([results], bold)  # type: ignore[arg-type]
        said = "".join(part for part in table.caption if isinstance(part, str))
        assert words in said
        assert "budget" not in said
        assert ("Holm" in said) == (bold == "significant")


def test_studies_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    first = write_study(tmp_path / "a", [ZINC], runs(ZINC, (0.5,) * 4))
    second = write_study(tmp_path / "b", [ZINC], runs(ZINC, (0.3,) * 4))
    _, table = table_of([first, second])
    (note,) = [note for note in table.notes if note.heading.startswith("In several")]
    assert note.items == ((f"{ZINC['id']}: of made in {second}, not of made in {first}",),)


@pytest.mark.parametrize("command", ["tables", "check", "page"])
def test_a_folder_given_twice_is_refused(tmp_path: Path, command: str) -> None:
    first, _ = two_studies(tmp_path)
    again = first.parent / "second" / ".." / "first"
    done = aggregate(command, first, again)
    assert (done.exit_code, done.stderr) == (
        2,
        f"error: {again}: given twice, expected each results folder once\n",
    )


def test_a_layout_that_does_not_fit_leaves_the_others_alone(tmp_path: Path) -> None:
    first, _ = two_studies(tmp_path)
    out = tmp_path / "out"
    done = aggregate("tables", first, "--out", out, "--layout", "small", "--layout", "graph_level")
    assert done.exit_code == 0
    assert (out / "graph_level.md").is_file()
    assert not (out / "small.md").exists()
    (line,) = done.stderr.splitlines()
    assert line.startswith("left out: layout small: none of the results has a place in it")
    assert line.endswith("it asks for the datasets dd, enzymes, proteins with gcn, graphsage, gat, gated_gcn")


def test_a_gated_cell_beside_another_vanilla_one_than_it_is_marked_by_is_noted(tmp_path: Path) -> None:
    """bi-GCN (0.5) of 500k is better than GCN of 500k (0.6), and stands beside GCN of 100k (0.4), which is better."""
    large, bi_large = vanilla("zinc", "gcn", budget=500_000), gated("zinc", "gcn", budget=500_000)
    tests = [(ZINC, (0.39, 0.41) * 2), (large, (0.59, 0.61) * 2), (bi_large, (0.49, 0.51) * 2)]
    trials = [trial for cell, values in tests for trial in runs(cell, values)]
    write_study(tmp_path / "both", [ZINC, large, bi_large], trials)
    write_study(tmp_path / "alone", [ZINC, bi_large], [trial for trial in trials if trial.cell != large["id"]])
    write_study(tmp_path / "facing", [large, bi_large], [trial for trial in trials if trial.cell != ZINC["id"]])
    layout = tmp_path / "mine.yaml"
    layout.write_text(
        "name: mine\ntitle: Mine\ncolumns: [model, test]\ndigits: 2\n"
        "sides: [{placement: none}, {placement: boosting}]\n"
        "blocks: [{dataset: zinc, sections: [[{backbone: gcn}]]}]\n",
        encoding="utf-8",
    )
    told = {}
    for name in ("both", "alone", "facing"):
        out = tmp_path / f"{name}-tables"
        assert aggregate("tables", tmp_path / name, "--layout", layout, "--out", out).exit_code == 0
        told[name] = (out / "mine.md").read_text(encoding="utf-8")
    assert "| GCN | 0.40 ± 0.01 | *bi*-GCN | **0.50 ± 0.01** |" in told["both"]
    heading = "Marked not by the vanilla model in its row, but by the one that it faces:"
    assert f"{heading}\n\n- ZINC, *bi*-GCN, L 4, budget 500000: ZINC, GCN, L 4, budget 500000\n" in told["both"]
    assert f"{heading}\n\n- ZINC, *bi*-GCN, L 4, budget 500000: it faces none\n" in told["alone"]
    assert heading not in told["facing"]
