"""The files of a table: byte for byte, and through pdflatex."""

import csv
import re
import shutil
from io import StringIO
from pathlib import Path

import pytest
from latex_documents import SPECIAL, names_study, pdflatex
from made_studies import gated, runs, trial, vanilla, worked_study, write_study
from rich.console import Console

from reports import write_tables
from reports.layout.columns import shortest
from reports.tables.terminal import WIDTH, least_width, print_terminal, render_terminal

EXPECTED = Path(__file__).parents[1] / "expected"


def terminal_text(folder: Path) -> str:
    stream = StringIO()
    table = write_tables(folder, folder / "tables").table
    Console(file=stream, width=WIDTH, highlight=False).print(render_terminal(table))
    return stream.getvalue()


@pytest.mark.parametrize("name", ["results.tex", "results_standalone.tex", "results.md", "results.csv", "results.html"])
def test_the_worked_study_byte_for_byte(tmp_path: Path, name: str) -> None:
    files = write_tables(worked_study(tmp_path / "study"), tmp_path / "out")
    written = {path.name: path for path in files.paths}
    assert written[name].read_bytes() == (EXPECTED / name).read_bytes()


def test_the_terminal_view_of_the_worked_study(tmp_path: Path) -> None:
    text = terminal_text(worked_study(tmp_path))
    assert max(map(len, text.splitlines())) <= WIDTH
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if line.startswith("│")]
    assert cells[0] == ["GCN", "4", "103077", "0.460 ± 0.010", "0.300 ± 0.000", "100.25"]
    assert cells[1] == ["bi-GCN (K=9, sigma_m=0.371)", "4", "125651", "0.400 ± 0.000 *", "0.400 ± 0.000", "2"]
    assert cells[6] == ["bi-GAT", "4", "99000", "0.100 ± 0.000 (3/4)", "0.100 ± 0.000", "2"]
    assert cells[9] == ["bi-GCN", "16", "536482", "0.280 ± 0.007 **", "0.280 ± 0.007", "2"]
    assert cells[15] == ["dense-GAT", "4", "–", "–", "–", "–"]  # noqa: RUF001
    assert "seed 35 diverged: train loss is NaN in epoch 3" in text


@pytest.mark.parametrize("width", [20, 60, 80, 99])
def test_on_a_narrow_terminal_names_are_folded_and_no_number_is_cut(tmp_path: Path, width: int) -> None:
    table = write_tables(worked_study(tmp_path / "study"), tmp_path / "out").table
    stream = StringIO()
    # 12 for the name, L, Params, 65.000 ± 5.000 (2/3), 70.000 ± 16.330, Epochs, and 2 between each two.
    assert least_width(table) == 12 + 1 + 6 + 20 + 15 + 6 + 5 * 2
    shown = max(width, least_width(table))
    Console(file=stream, width=shown, highlight=False).print(render_terminal(table, shown))
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= shown
    numbers = [spread for line in lines for spread in re.findall(r"\d\.\d{3} ± \d\.\d{3}", line)]
    whole = re.findall(r"\d\.\d{3} ± \d\.\d{3}", terminal_text(tmp_path / "study"))
    assert numbers == whole != []
    assert "…" not in stream.getvalue()


@pytest.mark.parametrize(("columns", "width"), [(40, 70), (85, 85), (200, WIDTH)])
def test_a_terminal_gets_its_own_width_within_what_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int, width: int
) -> None:
    table = write_tables(worked_study(tmp_path / "study"), tmp_path / "out").table
    stream, expected = StringIO(), StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    for name, value in (("COLUMNS", str(columns)), ("TERM", "xterm"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    print_terminal(table, stream)
    Console(file=expected, width=width, highlight=False).print(render_terminal(table, width))
    assert re.sub(r"\x1b\[[\d;]*m", "", stream.getvalue()) == expected.getvalue()


def test_a_file_gets_the_whole_width(tmp_path: Path) -> None:
    table = write_tables(worked_study(tmp_path / "study"), tmp_path / "out").table
    stream = StringIO()
    print_terminal(table, stream)
    assert stream.getvalue() == terminal_text(tmp_path / "study")


def test_the_same_records_give_the_same_bytes_anywhere(tmp_path: Path) -> None:
    first = write_tables(worked_study(tmp_path / "a"), tmp_path / "a" / "tables")
    shutil.copytree(tmp_path / "a" / "records", tmp_path / "b" / "records")
    shutil.copy(tmp_path / "a" / "plan.json", tmp_path / "b")
    second = write_tables(tmp_path / "b", tmp_path / "elsewhere" / "deep")
    for left, right in zip(first.paths, second.paths, strict=True):
        assert left.read_bytes() == right.read_bytes()


def test_csv_holds_the_unrounded_numbers(tmp_path: Path) -> None:
    cell = gated("digits", "gcn", seeds=[1, 2, 3])
    trials = [trial(cell, seed, value) for seed, value in [(1, 1 / 3), (2, 1 / 3), (3, 1 / 3)]]
    path = write_tables(write_study(tmp_path, [cell], trials), tmp_path / "tables").csv
    (row,) = csv.DictReader(path.open(encoding="utf-8"))
    assert float(row["test_mean"]) == 1 / 3
    assert (row["test_std"], row["n"], row["n_asked"], row["last_epoch"]) == ("0.0", "3", "3", "2.0")


def test_csv_tells_apart_rows_that_differ_in_settings_alone(tmp_path: Path) -> None:
    settings = [
        {"semantics": "paper", "pos_enc_dim": None, "departures": {}},
        {"semantics": "released", "pos_enc_dim": None, "departures": {}},
        {"semantics": "released", "pos_enc_dim": 8, "departures": {}},
        {"semantics": "released", "pos_enc_dim": 8, "departures": {"readout": "sum", "gcn_normalisation": "mean"}},
    ]
    cells = [vanilla("zinc", "gcn", id=f"cell {place}", **changes) for place, changes in enumerate(settings)]
    path = write_tables(write_study(tmp_path, cells, []), tmp_path / "tables").csv
    rows = csv.DictReader(path.open(encoding="utf-8"))
    assert {row["cell"]: (row["semantics"], row["pos_enc_dim"], row["departures"]) for row in rows} == {
        "cell 0": ("paper", "", ""),
        "cell 1": ("released", "", ""),
        "cell 2": ("released", "8", ""),
        "cell 3": ("released", "8", "gcn_normalisation=mean; readout=sum"),
    }


def test_an_empty_study_is_a_table_of_dashes(tmp_path: Path) -> None:
    write_study(tmp_path, [vanilla("zinc", "gcn"), gated("zinc", "gcn")], [])
    files = write_tables(tmp_path, tmp_path / "tables")
    assert "| GCN | 4 | – | – | – | – | *bi*-GCN | 4 | – | – | – | – |" in files.markdown.read_text()  # noqa: RUF001
    assert r"GCN & 4 & -- & -- & -- & -- & \emph{bi}-GCN & 4 & -- & -- & -- & -- \\" in files.fragment.read_text()
    assert "0 of 4 runs; seeds 41, 95, 12, 35 never started" in files.markdown.read_text()


def test_a_study_of_one_side_has_the_columns_of_one_side(tmp_path: Path) -> None:
    write_study(tmp_path, [vanilla("zinc", "gcn")], [])
    fragment = write_tables(tmp_path, tmp_path / "tables").fragment.read_text()
    assert r"\begin{tabular}{lrrccr}" in fragment
    assert r"\multicolumn{6}{c}{ZINC}" in fragment


def test_what_a_search_chose_stands_in_the_name(tmp_path: Path) -> None:
    cell = gated("digits", "gcn", id="c", seeds=[1], num_clusters=None, sigma_m=None, layers=None, budget=None)
    chosen = {"num_clusters": 12, "sigma_m": 1.23456e-5, "layers": 6, "budget": 50_000}
    files = write_tables(write_study(tmp_path, [cell], runs(cell, [0.5], **chosen)), tmp_path / "tables")
    markdown = files.markdown.read_text()
    assert "| *bi*-GCN (K=12, sigma\\_m=1.23e-05, budget 50000) | 6 |" in markdown
    assert "Where a setting was searched, the value in the model's name was chosen on the validation split." in markdown
    fragment = files.fragment.read_text()
    assert r"\emph{bi}-GCN ($K = 12$, $\sigma_m = 1.23 \times 10^{-5}$, budget 50000) & 6 &" in fragment
    assert "1.23456e-05" in files.csv.read_text()


def test_folds_of_several_seeds_are_told_apart(tmp_path: Path) -> None:
    cell = vanilla("enzymes", "gcn", seeds=[1, 2], folds=[0, 1])
    files = write_tables(write_study(tmp_path, [cell], [trial(cell, 1, 0.5, fold=0)]), tmp_path / "tables")
    text = files.markdown.read_text()
    assert "over 2 seeds on each of 2 folds" in text
    assert "1 of 4 runs; seed 1 fold 1 and seed 2 folds 0, 1 never started" in text


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    cell = vanilla("digits", "gcn", seeds=[1])
    stray = vanilla("digits", "gat", seeds=[1])
    trials = [trial(cell, 1, 0.5), trial(cell, 9, 0.9), trial(stray, 1, 0.9), trial(stray, 2, 0.9)]
    text = write_tables(write_study(tmp_path, [cell], trials), tmp_path / "tables").markdown.read_text()
    assert "- Digits, GCN, L 4, budget 100000: 1 confirm trial\n" in text
    assert "- 2 confirm trials of cells that are not in the plan\n" in text


@pytest.mark.parametrize(
    ("number", "text"),
    [(196.25, "196.25"), (137.5, "137.5"), (197.0, "197"), (100.0, "100"), (1 / 3, "0.33"), (0, "0")],
)
def test_epochs_have_no_trailing_zeros(number: float, text: str) -> None:
    assert shortest(number) == text


def test_the_worked_study_compiles_without_complaint(tmp_path: Path) -> None:
    log = pdflatex(write_tables(worked_study(tmp_path), tmp_path).standalone)
    assert "Overfull" not in log
    assert "Warning" not in log


def test_names_of_every_kind_compile_as_a_document(tmp_path: Path) -> None:
    pdflatex(write_tables(names_study(tmp_path), tmp_path).standalone)


@pytest.mark.parametrize("encoding", ["", r"\usepackage[T1]{fontenc}", r"\usepackage[latin1]{inputenc}"])
def test_names_of_every_kind_compile_as_a_fragment(tmp_path: Path, encoding: str) -> None:
    write_tables(names_study(tmp_path), tmp_path)
    packages = rf"\usepackage{{booktabs,graphicx,rotating,xcolor}}{encoding}"
    paper = tmp_path / "paper.tex"
    paper.write_text(rf"\documentclass{{article}}{packages}\begin{{document}}\input{{results}}\end{{document}}")
    pdflatex(paper)


def test_names_of_every_kind_are_printed_in_the_terminal(tmp_path: Path) -> None:
    text = terminal_text(names_study(tmp_path))
    assert SPECIAL in text.replace("\n", " ")
    assert "[/red]" in text


def test_half_a_surrogate_pair_is_replaced(tmp_path: Path) -> None:
    write_study(tmp_path, [vanilla("digits", "gcn", dataset_title="a\ud800b")], [])
    assert "### a?b" in write_tables(tmp_path, tmp_path).markdown.read_text(encoding="utf-8")


def test_a_long_table_stays_on_its_page(tmp_path: Path) -> None:
    cells = [vanilla("zinc", f"backbone-{place}") for place in range(90)]
    log = pdflatex(write_tables(write_study(tmp_path, cells, []), tmp_path).standalone)
    assert "Overfull" not in log


def test_the_document_parts_datasets_that_one_page_cannot_hold(tmp_path: Path) -> None:
    cells = [vanilla(name, f"b{place}") for name in ("zinc", "digits", "tsp") for place in range(15)]
    files = write_tables(write_study(tmp_path, cells, []), tmp_path)
    # 15 + 15 rows fit on a page of 30, the third dataset stands alone; the fragment is one table.
    assert files.standalone.read_text().count(r"\begin{tabular}") == 2
    assert files.fragment.read_text().count(r"\begin{tabular}") == 1
