"""The page of a study as text: what it holds, that it needs no other file, and that no name can break it."""

from __future__ import annotations

import base64
import hashlib
import io
import re
import shutil
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest
from aggregate_command import WITHOUT, aggregate, aggregate_process
from hostile_study import CAPTION, CELL, REASON, STUDY, TITLE, hostile_study
from made_studies import vanilla, worked_study, write_study
from matplotlib.figure import Figure
from measured_study import measured_study

from reports.compare.smoothing import compare_smoothing
from reports.page import build_page, render_page, write_page
from reports.pictures.oversmoothing import DEFAULT_MEASURE, caption

VOID = {"meta", "link", "br", "img", "input", "hr"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All words within, blanks put together."""
        return " ".join("".join(self.pieces).split())

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """The elements within of this name that have these attributes (``class_``: one of its classes)."""
        found = []
        for child in self.children:
            if child.tag == tag and all(child.has(name, value) for name, value in attributes.items()):
                found.append(child)
            found += child.all(tag, **attributes)
        return found

    def has(self, name: str, value: str) -> bool:
        own = self.attributes.get(name.rstrip("_"), "")
        return value in own.split() if name == "class_" else value == own

    def everything(self) -> list[Element]:
        return [self, *(found for child in self.children for found in child.everything())]


class Reader(HTMLParser):
    """Reads a page into elements, and insists that each is closed in its turn."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag, f"</{tag}> at {self.getpos()} closes another element"

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.pieces.append(data)


def read(path: Path) -> Element:
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    reader.close()
    assert reader.open == [reader.root], "elements were left open"
    return reader.root


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Element:
    return read(write_page([worked_study(tmp_path_factory.mktemp("worked"))]))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Element:
    return read(write_page([hostile_study(tmp_path_factory.mktemp("hostile"))]))


def rows(page: Element, section: str) -> list[list[Element]]:
    """The cells of the first table of a section, below its head."""
    (found,) = page.all("section", id=section)
    return [row.all("td") for row in found.all("table")[0].all("tbody")[0].all("tr")]


def column(page: Element, section: str, head: str) -> list[Element]:
    (found,) = page.all("section", id=section)
    heads = [cell.text for cell in found.all("table")[0].all("th")]
    return [row[heads.index(head)] for row in rows(page, section)]


def test_the_head_tells_what_ran(worked: Element) -> None:
    (head,) = worked.all("header", class_="top")
    facts = dict(zip((e.text for e in head.all("dt")), (e.text for e in head.all("dd")), strict=True))
    # By hand: 10 cells of 4 seeds, 3 of one, 3 of 3 folds; a run diverged, one is under way, a cell was never begun.
    assert facts["Trials"] == "search: 1 pruned; confirm: 47 finished, 1 diverged, 1 running"
    assert facts["Confirm runs"] == "47 of 52 finished"
    assert facts["Ran"] == "1970-01-01 00:01 UTC to 1970-01-01 00:01 UTC"
    assert facts["Code"] == "unknown code state"
    assert worked.all("h1")[0].text == worked.all("title")[0].text == "Worked_Study"


def test_the_paper_s_table_marks_and_links_its_numbers(worked: Element) -> None:
    (results,) = worked.all("section", id="results")
    (best,) = results.all("b", class_="best")[1:]  # the first is in the caption's rule
    assert best.text == "0.280 ± 0.007 (best)"  # mean of .27 .28 .28 .29; std = sqrt(.00005)
    (link,) = [link for link in results.all("a", class_="number") if link.all("b", class_="best")]
    assert link.attributes["href"] == "#cell-zinc-gcn-boosting-bilateral-L16-500000"
    assert [b.text for b in results.all("b", class_="better")[1:]] == [
        "0.400 ± 0.000 (better than vanilla)",
        "0.400 ± 0.020 (better than vanilla)",
    ]


def test_the_flat_table_sorts_by_all_digits_and_knows_what_is_missing(worked: Element) -> None:
    means = column(worked, "cells", "Test mean")
    assert len(means) == 16
    assert means[0].text == "0.460"
    assert float(means[0].attributes["data-value"]) == pytest.approx(0.46, abs=1e-12)
    # Per cent where the paper has per cent; GraphSAGE's mean of .468 .468 .468 .472 is .469.
    assert [cell.text for cell in means[10:13]] == ["97.438", "97.437", "90.000"]
    assert float(means[4].attributes["data-value"]) == pytest.approx(0.469, abs=1e-12)
    assert means[-1].text == "–"  # noqa: RUF001
    assert means[-1].attributes["data-value"] == ""
    assert [cell.text for cell in column(worked, "cells", "Runs")][-3:] == ["2/3", "3/3", "0/3"]


def test_the_plan_stands_beside_what_was_run(worked: Element) -> None:
    line = rows(worked, "plan")[6]
    assert [line[0].text, line[1].text] == ["ZINC", "bi-GAT"]
    assert column(worked, "plan", "Confirm: planned")[6].text == "4"
    assert column(worked, "plan", "Confirm: finished")[6].text == "3"
    assert column(worked, "plan", "Confirm: missing")[6].text == "1"
    assert (
        column(worked, "plan", "What is missing, and why")[6].text == "seed 35: diverged: train loss is NaN in epoch 3"
    )


def test_the_evidence_of_a_number_gives_the_number(worked: Element) -> None:
    (evidence,) = worked.all("details", id="cell-zinc-graphsage-none-L4-100000")
    assert evidence.all("summary")[0].text == "ZINC, GraphSAGE, L 4: MAE 0.469 ± 0.002"
    table = evidence.all("table")[0]
    heads = [cell.text for cell in table.all("th")]
    runs = [dict(zip(heads, (cell.text for cell in row.all("td")), strict=True)) for row in table.all("tr")[1:]]
    assert [run["Seed"] for run in runs] == ["41", "95", "12", "35"]
    tests = [float(run["Test MAE"]) for run in runs]
    assert tests == [0.468, 0.468, 0.468, 0.472]
    assert all(re.fullmatch(r"[0-9a-f]{20}", run["Key"]) for run in runs)
    assert [run["Record"] for run in runs] == [f"records/{run['Key']}.parquet" for run in runs]


def test_findings_that_forbid_publishing_stand_in_a_banner(worked: Element) -> None:
    (alarm,) = worked.all("div", class_="alarm")
    assert "ZINC bi-GAT 100k L4: 3 of 4 runs gave a number" in alarm.text
    (check,) = worked.all("section", id="check")
    severities = [found.attributes["class"] for found in check.all("div", class_="finding")]
    assert severities == sorted(severities)  # finding forbids < finding warns
    assert {link.attributes["href"] for link in alarm.all("a")} >= {"#cell-zinc-gat-boosting-bilateral-L4-100000"}


def test_comparisons_open_the_evidence_of_both_sides(worked: Element) -> None:
    (found,) = worked.all("section", id="comparisons")
    (row,) = [row for row in found.all("tr") if "0.280 ± 0.007" in row.text]
    # .28 - .37. By hand: both stds (ddof 1) are sqrt(.0002 / 3), so t = .09 / sqrt(2 * .0002 / 3 / 4) = 15.6 with 6
    # degrees of freedom: p = 4e-6, and still below .001 times the seven tests.
    assert [cell.text for cell in row.all("td")][8] == "-0.090"
    assert [cell.text for cell in row.all("td")][-3:] == ["< 0.001", "< 0.001", "better"]
    # What is printed as 0.001 is no less than that.
    assert 0.00099 < float(row.all("td")[-3].attributes["data-value"]) < 0.001
    assert {link.attributes["href"]: link.text for link in row.all("a")} == {
        "#cell-zinc-gcn-boosting-bilateral-L16-500000": "0.280 ± 0.007",
        "#cell-zinc-gcn-none-L16-500000": "0.370 ± 0.007",
    }


def test_published_rows_can_be_sorted_without_losing_whose_they_are(worked: Element) -> None:
    (found,) = worked.all("section", id="published")
    rows = [row.all("td") for row in found.all("tr") if len(row.all("td")) == len(found.all("thead")[0].all("th"))]
    assert rows
    assert all(row[0].text and row[2].all("a") for row in rows)
    # The paper's 16-layer bi-GCN on ZINC, Table 2.
    (ours,) = [row for row in rows if row[3].text == "bi-GCN L16" and "0.280" in row[2].text]
    assert ours[2].all("a")[0].attributes["href"] == "#cell-zinc-gcn-boosting-bilateral-L16-500000"
    # A later result of GCN on ZINC stands below the paper's row: our number is named once more, and sorted by.
    (below,) = [row for row in rows[rows.index(ours) + 1 :][:1] if row[3].text == "GCN+"]
    assert below[2].text == ours[2].text == "0.280 ± 0.007"
    assert below[2].attributes["data-value"] == "0.280"


@pytest.mark.parametrize("name", ["worked", "hostile"])
def test_a_page_is_whole_and_its_links_lead_somewhere(name: str, request: pytest.FixtureRequest) -> None:
    page = request.getfixturevalue(name)
    ids = Counter(element.attributes["id"] for element in page.everything() if "id" in element.attributes)
    assert [found for found, count in ids.items() if count > 1] == []
    assert not [found for found in ids if re.search(r"[\s\"'<>&]", found)]
    for link in page.all("a"):
        assert link.attributes["href"].startswith("#")
        assert link.attributes["href"][1:] in ids
    for section in page.all("section"):
        for table in section.all("table"):
            cells = [row.all("td") or row.all("th") for row in table.all("tr")]
            widths = {sum(int(cell.attributes.get("colspan", "1")) for cell in row) for row in cells}
            assert len(widths) == 1, f"rows of unequal length in {section.attributes}"


@pytest.mark.parametrize("name", ["worked", "hostile"])
def test_nothing_is_loaded_and_one_script_runs(name: str, request: pytest.FixtureRequest) -> None:
    page = request.getfixturevalue(name)
    (script,) = page.all("script")
    (policy,) = page.all("meta", **{"http-equiv": "Content-Security-Policy"})
    digest = base64.b64encode(hashlib.sha256("".join(script.pieces).encode()).digest()).decode()
    assert f"default-src 'none'; script-src 'sha256-{digest}';" in policy.attributes["content"]
    for element in page.everything():
        assert not {"src", "srcset", "action", "formaction", "background"} & set(element.attributes)
        assert not [found for found in element.attributes if found.startswith("on")]
        if element.tag == "link":
            assert element.attributes == {"rel": "icon", "href": "data:,"}
    assert not {element.tag for element in page.everything()} & {"img", "iframe", "object", "embed", "base", "form"}
    style = page.all("style")[0].text
    assert "url(" not in style
    assert "@import" not in style


def test_hostile_names_are_shown_as_they_are(hostile: Element) -> None:
    assert hostile.all("h1")[0].text == hostile.all("title")[0].text == STUDY
    assert hostile.all("p", class_="lead")[0].text == CAPTION
    assert {cell.text for cell in column(hostile, "cells", "Dataset")} == {TITLE}
    assert [code.text for code in hostile.all("code") if code.text == CELL] == [CELL]
    assert column(hostile, "plan", "What is missing, and why")[1].text == f"seed 35: failed: {REASON}"
    links = [cell.all("a")[0].attributes["href"] for cell in column(hostile, "cells", "Test mean")]
    assert len(set(links)) == 3


def test_the_same_records_give_the_same_bytes_wherever_they_lie(tmp_path: Path) -> None:
    first = worked_study(tmp_path / "first")
    shutil.copytree(first, tmp_path / "elsewhere" / "second")
    content = write_page([first]).read_bytes()
    assert write_page([tmp_path / "elsewhere" / "second"], tmp_path / "out" / "x.html").read_bytes() == content
    assert str(tmp_path).encode() not in content


def test_several_studies_share_a_page(tmp_path: Path, hostile: Element) -> None:
    page = read(write_page([worked_study(tmp_path / "a"), hostile_study(tmp_path / "b")], tmp_path / "both.html"))
    ids = Counter(element.attributes["id"] for element in page.everything() if "id" in element.attributes)
    assert max(ids.values()) == 1
    assert {"cell-zinc-gcn-none-L4-100000", "study", "s2-study", "results", "s2-results"} <= set(ids)
    alone = [cell.all("a")[0].attributes["href"] for cell in column(hostile, "cells", "Test mean")]
    together = [cell.all("a")[0].attributes["href"] for cell in column(page, "s2-cells", "Test mean")]
    assert together == [href.replace("#cell-", "#s2-cell-") for href in alone]
    (comparisons,) = page.all("section", id="comparisons")
    linked = {link.attributes["href"] for link in comparisons.all("a")}
    assert {"#cell-zinc-gcn-none-L4-100000", *together[:2]} <= linked  # the hostile GCN and the gated one that faces it


@dataclass(frozen=True)
class Drawn:
    name: str
    title: str
    caption: str
    svg: str


def two_pictures(folder: Path) -> tuple[Drawn, ...]:
    """Two of the same, but for names that no id may hold."""
    figure = Figure(figsize=(3, 2))
    axes = figure.add_subplot()
    axes.plot([1, 2, 3], [3, 1, 2], label="<script>window.hacked = 1</script>")
    axes.legend()
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    return tuple(Drawn(f"a {sign} b", f"Title {TITLE} {sign}", f"Caption {TITLE}", stream.getvalue()) for sign in "<>")


def test_pictures_stand_in_the_page_each_with_ids_of_its_own(tmp_path: Path) -> None:
    page = read(write_page([hostile_study(tmp_path)], draw=two_pictures))
    (section,) = page.all("section", id="pictures")
    figures = section.all("figure")
    assert [figure.all("h3")[0].text for figure in figures] == [f"Title {TITLE} <", f"Title {TITLE} >"]
    assert [figure.all("figcaption")[0].text for figure in figures] == [f"Caption {TITLE}"] * 2
    ids = [
        {e.attributes["id"] for e in figure.all("svg")[0].everything() if "id" in e.attributes} for figure in figures
    ]
    assert len(ids[0]) == len(ids[1]) > 10
    assert not ids[0] & ids[1]
    for figure, own in zip(figures, ids, strict=True):
        used = {use.attributes["href"] for use in figure.all("use")}
        assert used
        assert used <= {f"#{found}" for found in own}
    assert len(page.all("script")) == len(page.all("style")) == 1


def test_the_figure_of_over_smoothing_is_in_the_page_once_it_was_measured(tmp_path: Path) -> None:
    study = measured_study(tmp_path)
    path = write_page([study])
    figure = read(path).all("figure")[-1]
    assert figure.all("h3")[0].text.startswith("Over-smoothing by layer: GCN and bi-GCN")
    assert figure.all("figcaption")[0].text == caption(compare_smoothing(study, DEFAULT_MEASURE)[0])
    content = path.read_bytes()
    assert write_page([study]).read_bytes() == content


def test_a_study_of_which_nothing_is_on_record_has_a_page(tmp_path: Path) -> None:
    page = read(write_page([write_study(tmp_path, [vanilla("zinc", "gcn")], [])]))
    assert page.all("header", class_="top")[0].all("dd")[0].text == "none on record"
    assert [cell.text for cell in column(page, "cells", "Test mean")] == ["–"]  # noqa: RUF001
    assert column(page, "plan", "Confirm: missing")[0].text == "4"


def test_a_name_with_half_a_surrogate_pair_breaks_nothing(tmp_path: Path) -> None:
    study = write_study(tmp_path, [vanilla("zinc", "gcn")], [], study="odd \ud800 name")
    assert read(write_page([study])).all("h1")[0].text == "odd ? name"


def test_the_command_writes_the_page_without_torch_ray_and_mlflow(tmp_path: Path) -> None:
    study = worked_study(tmp_path / "study")
    done = aggregate_process("page", study, code=WITHOUT)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", f"{study / 'page.html'}\n")
    assert (study / "page.html").read_text(encoding="utf-8") == render_page(build_page([study]))


def test_errors_of_the_command_are_one_line(tmp_path: Path) -> None:
    for arguments, words in [
        ((tmp_path / "missing",), "no study here (there is no such folder); give a study's results folder, or its URL"),
        ((worked_study(tmp_path / "study"), "--out", tmp_path), "found a folder, expected the name of a file"),
        ((worked_study(tmp_path / "study"), "--out", tmp_path / "study" / "plan.json" / "x.html"), "plan.json"),
    ]:
        done = aggregate("page", *arguments)
        assert (done.exit_code, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert line.startswith("error: ")
        assert words in line


def colours(scheme: str) -> dict[str, str]:
    """The page's colours by name, as its style declares them for a scheme (the dark one after the light)."""
    style = (files("reports.page") / "templates" / "page.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root \{(.*?)\}", style, flags=re.DOTALL)
    found: dict[str, str] = {}
    for block in blocks[: 1 if scheme == "light" else 2]:
        found |= dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", block))
    return found


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_what_is_behind_them(scheme: str) -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    found = colours(scheme)
    for behind in ("paper", "raised", "forbids-back"):
        for ink in ("ink", "soft", "link", "best", "forbids"):
            assert contrast(found[ink], found[behind]) >= 4.5, (scheme, ink, behind)
    assert contrast(found["warns"], found["paper"]) >= 4.5
    assert contrast(found["focus"], found["paper"]) >= 3
