"""A plain table in every format: exact where the format is ours, through its reader where it is not."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path

import pytest
from aggregate_command import aggregate
from hypothesis import given
from hypothesis import strategies as st
from latex_documents import FOREIGN, SPECIAL, pdflatex
from made_studies import gated, runs, trial, vanilla, worked_study, write_study

from reports.compare.against_published import beside_published
from reports.compare.comparison_table import compare_tables, comparison_grid, p_value_text
from reports.compare.published_table import published_grid, write_comparisons
from reports.grid import (
    Column,
    Grid,
    Section,
    render_csv,
    render_fragment,
    render_html,
    render_markdown,
    render_standalone,
    write_grid,
)
from reports.grid.latex import ROWS_OF_A_PAGE
from reports.layout.result_table import build_table
from reports.records.load import load_results
from reports.summary.labels import Detail, Label
from reports.summary.marks import Mark
from reports.words.prose import Marked, Note

NAME = Label(prefix="bi", name="GCN_2", details=(Detail(key="sigma_m", value="0.5"),))
GRID = Grid(
    name="made",
    title="A made table",
    caption=("Bold: ", Marked(words="R&D", mark=Mark.BETTER), "."),
    columns=(Column(head="Model"), Column(head="p_1", align="right"), Column(head="Why", width=20)),
    sections=(
        Section(title="A & B", rows=(((NAME,), ("-0.5",), ("less | more",)),)),
        Section(title="C", rows=((("x",), (Marked(words="1", mark=Mark.BEST),), ("",)),)),
    ),
    notes=(Note(heading="Left out:", items=(("a<b",),)),),
    nothing="There is nothing.",
    wide=False,
    record_fields=("a", "b"),
    records=({"a": 0.1 + 0.2, "b": None}, {"a": "x,y", "b": True}),
)
EMPTY = replace(GRID, sections=(), records=(), notes=())


class Page(HTMLParser):
    """The texts of the cells, row by row, and every element and attribute that stands in the page."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.elements: set[str] = set()
        self.bold: list[str | None] = []
        self._in_cell = False
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self._in_cell = True
        if tag == "b":
            self.bold.append(dict(attrs)["class"])

    def handle_endtag(self, tag: str) -> None:
        self._in_cell &= tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.rows[-1][-1] += data


def test_markdown() -> None:
    assert render_markdown(GRID) == (
        "Bold: **R\\&D**.\n"
        "\n"
        "### A \\& B\n"
        "\n"
        "| Model | p\\_1 | Why |\n"
        "| :-- | --: | :-- |\n"
        "| *bi*-GCN\\_2 (sigma\\_m=0.5) | -0.5 | less \\| more |\n"
        "\n"
        "### C\n"
        "\n"
        "| Model | p\\_1 | Why |\n"
        "| :-- | --: | :-- |\n"
        "| x | **1** (best) | |\n"
        "\n"
        "Left out:\n"
        "\n"
        "- a\\<b\n"
    )


def test_markdown_without_titles_is_one_table() -> None:
    sections = tuple(replace(section, title=None) for section in GRID.sections)
    text = render_markdown(replace(GRID, sections=sections, notes=()))
    assert text.count(":--") == 2
    assert text.endswith("less \\| more |\n| | | |\n| x | **1** (best) | |\n")


def test_csv_has_the_records_unrounded() -> None:
    assert render_csv(GRID) == 'a,b\n0.30000000000000004,\n"x,y",True\n'


def test_html_says_what_the_table_says() -> None:
    page = Page(render_html(GRID))
    assert page.rows == [
        ["Model", "p_1", "Why"],
        ["A & B"],
        ["bi-GCN_2 (sigma_m=0.5)", "-0.5", "less | more"],
        ["C"],
        ["x", "1", ""],
    ]
    assert page.bold == ["better", "best"]


def test_latex() -> None:
    assert render_fragment(GRID) == "\n".join(
        [
            r"% Needs \usepackage{array} \usepackage{booktabs} \usepackage{graphicx} \usepackage{xcolor}",
            r"\begin{table}",
            r"\centering",
            r"\caption{Bold: \textbf{R\&D}.}",
            r"\label{tab:made}",
            r"\smallskip",
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            r"\begin{tabular}{lr>{\raggedright\arraybackslash}p{10em}}",
            r"\toprule",
            r"Model & p\_1 & Why \\",
            r"\midrule",
            r"\multicolumn{3}{l}{A \& B} \\[2pt]",
            r"\emph{bi}-GCN\_2 ($\sigma_m = 0.5$) & $-$0.5 & less \textbar{} more \\",
            r"\midrule",
            r"\multicolumn{3}{l}{C} \\[2pt]",
            r"x & \textcolor{red}{\textbf{1}} &  \\",
            r"\bottomrule",
            r"\end{tabular}%",
            r"}",
            r"\par\medskip",
            r"{\footnotesize\raggedright",
            r"Left out:\par",
            r"\quad a\textless{}b\par",
            r"}",
            r"\end{table}",
            "",
        ]
    )


@pytest.mark.parametrize("grid", [GRID, EMPTY], ids=["full", "empty"])
@pytest.mark.parametrize("wide", [False, True])
def test_a_table_without_rows_says_so(grid: Grid, wide: bool) -> None:
    grid = replace(grid, wide=wide)
    texts = (render_markdown(grid), render_html(grid), render_fragment(grid), render_standalone(grid))
    assert [("There is nothing." in text) for text in texts] == [grid.sections == ()] * 4
    assert ("sidewaystable" in texts[2]) == ("{rotating}" in texts[2]) == wide


@given(st.integers(0, 200))
def test_pages_hold_every_row_once_and_in_order(count: int) -> None:
    halves = [range(count // 2), range(count // 2, count)]
    sections = tuple(
        Section(title=name, rows=tuple(((f"row{place}",), ("1",), ("",)) for place in half))
        for name, half in zip("AB", halves, strict=True)
    )
    text = render_standalone(replace(GRID, sections=sections))
    assert re.findall(r"row(\d+)", text) == [str(place) for place in range(count)]
    pages = text.split(r"\newpage")
    assert all(len(re.findall(r"row\d+", page)) <= ROWS_OF_A_PAGE for page in pages)
    fragment = render_fragment(replace(GRID, sections=sections))
    assert fragment.count(r"\begin{table}") == fragment.count(r"\end{table}") == len(pages)
    assert fragment.count(r"\label") == 1


@pytest.mark.parametrize(("count", "pages"), [(34, [34]), (35, [34, 1])])
def test_a_page_is_full_at_36_lines_of_which_a_title_takes_two(count: int, pages: list[int]) -> None:
    section = Section(title="A", rows=tuple((("row",), ("1",), ("",)) for _ in range(count)))
    text = render_standalone(replace(GRID, sections=(section,)))
    assert [page.count("row") for page in text.split(r"\newpage")] == pages


@given(st.text(max_size=30))
def test_any_text_can_stand_anywhere(words: str) -> None:
    row = ((words,), (Marked(words=words, mark=Mark.BEST),), (Label(prefix=words, name=words),))
    grid = replace(GRID, caption=(words,), sections=(Section(title=words, rows=(row,)),), notes=(Note(heading=words),))
    assert render_fragment(grid).isascii()
    assert Page(render_html(grid)).elements <= Page(render_html(GRID)).elements
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", render_html(grid))
    lines = [line for line in render_markdown(grid).splitlines() if line.startswith("| ")]
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in lines] == [4, 4, 4]


def test_files_compile_with_every_sign(tmp_path: Path) -> None:
    names = (SPECIAL, FOREIGN, "-5% --", "[x]")
    rows = tuple(((Label(prefix=name, name=name),), (name,), (name,)) for name in names)
    grid = replace(GRID, title=SPECIAL, caption=names, sections=(Section(title=FOREIGN, rows=rows * 20),), wide=True)
    paths = write_grid(grid, tmp_path)
    assert [path.name for path in paths] == [
        *("made.tex", "made_standalone.tex", "made.md", "made.csv", "made.html"),
    ]
    pdflatex(tmp_path / "made_standalone.tex")
    document = tmp_path / "document.tex"
    packages = "".join(re.findall(r"\\usepackage\{\w+\}", paths[0].read_text().splitlines()[0]))
    document.write_text(rf"\documentclass{{article}}{packages}\begin{{document}}\input{{made}}\end{{document}}")
    pdflatex(document)


def test_half_a_surrogate_pair_is_replaced(tmp_path: Path) -> None:
    write_grid(replace(GRID, caption=("a\ud800b",)), tmp_path)
    assert (tmp_path / "made.md").read_text(encoding="utf-8").startswith("a?b\n")
    assert "a?b" in (tmp_path / "made.html").read_text(encoding="utf-8")


class TestComparisons:
    def test_a_row_as_it_is_read(self, tmp_path: Path) -> None:
        text = render_markdown(comparison_grid(compare_tables([build_table(load_results(worked_study(tmp_path)))])))
        # The interval of four values with standard deviation 0.01155 (ddof 1): 3.18245 * 0.01155 / 2 = 0.01837.
        row = (
            r"| *uniform*-GCN | 4 | 0.400 ± 0.020 | \[0.363, 0.437\] | GCN | 4 | 0.460 ± 0.010 | \[0.442, 0.478\] "
            r"| -0.060 | \[-0.095, -0.025\] | -2.86 | 0.008 | 0.061 | no difference shown |"
        )
        assert row in text.splitlines()
        assert "corrected over the 9 comparisons of this table, of which 6 without a test count as p = 1" in text
        assert "not tested: incomplete: bilateral lacks 1 run" in text
        assert "Folds share" not in text

    def test_the_csv_is_unrounded(self, tmp_path: Path) -> None:
        text = render_csv(comparison_grid(compare_tables([build_table(load_results(worked_study(tmp_path)))])))
        rows = {row["gated_cell"]: row for row in csv.DictReader(StringIO(text))}
        row = rows["zinc-gcn-boosting-bilateral-L16-500000"]
        assert float(row["difference"]) == pytest.approx(-0.09)
        assert float(row["gated_std"]) == pytest.approx(0.01 / 2**0.5)
        assert (row["test"], row["significant"], row["favours_gated"], row["reason"]) == ("Welch t", "True", "True", "")
        assert row["vanilla_interval_method"] == "Student t"
        untested = rows["digits-bi-8"]
        assert (untested["p"], untested["significant"], untested["gated_interval_low"]) == ("", "", "")

    def test_studies_given_together_are_corrected_together(self, tmp_path: Path) -> None:
        tables = []
        for name in ("zinc", "digits"):
            base, bi = vanilla(name, "gcn"), gated(name, "gcn")
            trials = [*runs(base, [0.4, 0.5, 0.4, 0.5]), *runs(bi, [0.6, 0.8, 0.6, 0.8])]
            tables.append(build_table(load_results(write_study(tmp_path / name, [base, bi], trials))))
        alone, together = compare_tables(tables[:1]), compare_tables(tables)
        assert together[0].comparison.p_holm == pytest.approx(2 * alone[0].comparison.p_holm)  # type: ignore[operator]

    def test_folds_are_warned_of(self, tmp_path: Path) -> None:
        folds = {"seeds": [41], "folds": [0, 1, 2]}
        base, bi = vanilla("enzymes", "gcn", **folds), gated("enzymes", "gcn", **folds)
        trials = [
            *(trial(base, 41, test, fold=fold) for fold, test in enumerate([0.5, 0.65, 0.7])),
            *(trial(bi, 41, test, fold=fold) for fold, test in enumerate([0.6, 0.7, 0.8])),
        ]
        table = build_table(load_results(write_study(tmp_path, [base, bi], trials)))
        text = render_markdown(comparison_grid(compare_tables([table])))
        assert "Folds share most of their training graphs" in text
        assert r"| +8.333 | \[+1.162, +15.504\] | +2.89 | 0.038 | **0.038** | **better** |" in text
        without = build_table(load_results(worked_study(tmp_path / "without")))
        together = render_markdown(comparison_grid(compare_tables([without, table])))
        assert "Folds share most of their training graphs" in together

    def test_p_values_have_three_decimals(self) -> None:
        shown = [p_value_text(value) for value in (None, 0.000999, 0.001, 0.0014, 0.0494, 1.0)]
        assert shown == ["–", "< 0.001", "0.001", "0.001", "0.049", "1.000"]  # noqa: RUF001

    def test_a_p_below_the_level_is_not_printed_as_the_level(self) -> None:
        shown = [p_value_text(value) for value in (0.0496, 0.05 - 1e-9, 0.05, 0.0504)]
        assert shown == ["< 0.050", "< 0.050", "0.050", "0.050"]

    # Both standard deviations (ddof 1) are sqrt(.01 / 3), so Hedges' g is (1 - 3 / 23) / .0577 = 15.06 differences, and
    # half the interval is t(0.975, 6) = 2.447 times .0577 / sqrt(2): .0999 to either side.
    @pytest.mark.parametrize(
        ("difference", "row"),
        [
            (-1e-4, r"| 0.000 | \[-0.100, +0.100\] | 0.00 |"),
            (1e-4, r"| 0.000 | \[-0.100, +0.100\] | 0.00 |"),
            (0.0, r"| 0.000 | \[-0.100, +0.100\] | 0.00 |"),
            (-6e-4, r"| -0.001 | \[-0.100, +0.099\] | -0.01 |"),
        ],
    )
    def test_a_difference_that_rounds_to_zero_has_no_sign(self, tmp_path: Path, difference: float, row: str) -> None:
        base, bi = vanilla("zinc", "gcn"), gated("zinc", "gcn")
        tests = [0.4, 0.5, 0.4, 0.5]
        trials = [*runs(base, tests), *runs(bi, [test + difference for test in tests])]
        results = load_results(write_study(tmp_path, [base, bi], trials))
        assert row in render_markdown(comparison_grid(compare_tables([build_table(results)])))

    def test_no_pairs(self, tmp_path: Path) -> None:
        table = build_table(load_results(write_study(tmp_path, [vanilla("zinc", "gcn")], [])))
        assert "No gated model faces a vanilla one." in render_markdown(comparison_grid(compare_tables([table])))


class TestPublished:
    def test_a_row_as_it_is_read(self, tmp_path: Path) -> None:
        text = render_markdown(published_grid(beside_published(load_results(worked_study(tmp_path)))))
        assert re.search(
            r"\| GCN \| 16 \| 0\.370 ± 0\.007 \| GCN L16 \| 0\.367 ± 0\.011 "
            r"\| the benchmark's authors; the paper took it over \| \+0\.003 \| yes \| 0\.\d{3} "
            r"\| hidden dim 70 \(172\); not on record: ",
            text,
        )
        assert r"| *uniform*-GCN | 4 | 0.400 ± 0.020 | bi-GCN L4 (nearest) | 0.394 ± 0.006 |" in text
        assert "- ZINC, *bi*-GAT: incomplete: 3 of 4 runs\n" in text
        assert r"gnn\_plus: arXiv:2502.09263" in text
        assert "where their number is known:\n\n- ZINC: 0f\n" in text

    def test_nothing_published(self, tmp_path: Path) -> None:
        results = load_results(write_study(tmp_path, [vanilla("digits", "gcn")], []))
        text = render_markdown(published_grid(beside_published(results)))
        assert text.endswith("Nothing is published of these datasets.\n")

    def test_the_csv_names_both_values(self, tmp_path: Path) -> None:
        text = render_csv(published_grid(beside_published(load_results(worked_study(tmp_path)))))
        rows = [row for row in csv.DictReader(StringIO(text)) if row["kind"] == "paper"]
        (row,) = [row for row in rows if row["cell"] == "zinc-gcn-boosting-uniform-L4-100000"]
        assert row["differs"].startswith("gate=uniform|bilateral; hidden_dim=70|145; ")
        assert (row["counterpart"], row["published_params"], row["printed_runs"]) == ("False", "125651", "4")


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    results = load_results(worked_study(tmp_path / "study"))
    first, second = (write_comparisons([results], tmp_path / name) for name in ("first", "second"))
    assert [path.name for path in first] == [path.name for path in second]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    for path in first:
        if path.stem.endswith("_standalone"):
            pdflatex(path)


def test_the_command_writes_both(tmp_path: Path) -> None:
    done = aggregate("tables", worked_study(tmp_path))
    assert (done.exit_code, done.stderr) == (0, "")
    for name in ("comparisons", "published"):
        for end in (".tex", "_standalone.tex", ".md", ".csv", ".html"):
            assert f"{tmp_path}/tables/{name}{end}\n" in done.stdout
            assert (tmp_path / "tables" / f"{name}{end}").stat().st_size > 0
