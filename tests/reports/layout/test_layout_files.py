"""Layout files: what is refused and how, and that every shipped one holds each row of the paper once."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.layout.laid_out import fill
from reports.layout.layout_file import RESERVED, DatasetLayout, Layout, Selector
from reports.layout.layout_reader import find_layouts, part_layouts, read_layout, shipped_layouts
from reports.layout.placed import expected_label, placed_rows
from reports.published.rows import paper_rows
from reports.records.plan import ResultsError
from study.whole_files import write_whole

BLOCKS = "blocks: [{dataset: zinc, sections: [[{backbone: gcn}]]}]\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_least_that_is_a_layout(tmp_path: Path) -> None:
    layout = read_layout(written(tmp_path, f"name: mine\ntitle: Mine\n{BLOCKS}"))
    assert isinstance(layout, Layout)
    assert layout.columns == ("model", "layers", "params", "test", "train", "epochs")
    assert (layout.digits, layout.model_once, layout.published) == (3, False, None)
    assert layout.sides == (Selector(),)
    assert layout.blocks[0].sections[0][0].wanted == {"backbone": "gcn"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"nmae: mine\ntitle: Mine\n{BLOCKS}", "nmae: found an unknown key, expected name"),
        (f"title: Mine\n{BLOCKS}", "name: found nothing, expected a value: the key is required"),
        (f"name: a/b\ntitle: Mine\n{BLOCKS}", "name: found 'a/b', expected letters, digits, hyphens and underscores"),
        (f"name: results\ntitle: Mine\n{BLOCKS}", "name: found 'results', expected another name: files of this name"),
        (f"name: a_standalone\ntitle: T\n{BLOCKS}", "name: found 'a_standalone', expected another name"),
        (f"name: {'a' * 201}\ntitle: T\n{BLOCKS}", "name: found 'aaa"),
        (f"name: {{b: 1, c: 2}}\ntitle: T\n{BLOCKS}", "name: found a mapping of b, c, expected text"),
        (f"name: {'/' * 60}\ntitle: T\n{BLOCKS}", f"name: found '{'/' * 60}', expected letters"),
        (f"name: {'/' * 61}\ntitle: T\n{BLOCKS}", f"name: found '{'/' * 57}...', expected letters"),
        (f"name: {{}}\ntitle: T\n{BLOCKS}", "name: found an empty mapping, expected text"),
        (f"name: a\ntitle: ' '\n{BLOCKS}", "title: found ' ', expected text that is not empty"),
        (f"name: a\ntitle: T\ndigts: 2\n{BLOCKS}", "digts: found an unknown key, expected digits"),
        (f"name: a\ntitle: T\ndigits: two\n{BLOCKS}", "digits: found 'two', expected a whole number"),
        (f"name: a\ntitle: T\ndigits: 11\n{BLOCKS}", "digits: found 11, expected 10 or less"),
        (f"name: a\ntitle: T\ndigits: -1\n{BLOCKS}", "digits: found -1, expected 0 or more"),
        (f"name: a\ntitle: T\ncolumns: []\n{BLOCKS}", "columns: found an empty list, expected a list of one or more"),
        (f"name: a\ntitle: T\ncolumns: test\n{BLOCKS}", "columns: found 'test', expected a list"),
        (f"name: a\ntitle: T\ncolumns: [best]\n{BLOCKS}", "columns[0]: found 'best', expected one of model, layers, "),
        (f"name: a\ntitle: T\ncolumns: [test, test]\n{BLOCKS}", "columns: found a list, expected each once: test"),
        (
            f"name: a\ntitle: T\ncolumns: [test]\nmodel_once: true\n{BLOCKS}",
            "model_once: found true, expected false, or a column model",
        ),
        (f"name: a\ntitle: T\npublished: table_2\n{BLOCKS}", "published: found 'table_2', expected one of graph_level"),
        (
            f"name: a\ntitle: T\nsides: [{{depth: 4}}]\n{BLOCKS}",
            "sides[0].depth: found an unknown key, expected one of",
        ),
        (f"name: a\ntitle: T\nsides: [{{gate: none}}]\n{BLOCKS}", "sides[0].gate: found 'none', expected one of bilat"),
        ("name: a\ntitle: T\nblocks: []\n", "blocks: found an empty list, expected a list of one or more"),
        ("name: a\ntitle: T\nblocks: [zinc]\n", "blocks[0]: found 'zinc', expected a mapping of keys and values"),
        ("name: a\ntitle: T\nblocks: [{sections: [[{}]]}]\n", "blocks[0].dataset: found nothing, expected a value"),
        (
            "name: a\ntitle: T\nblocks: [{dataset: zinc, sections: [[{layers: '4'}]]}]\n",
            "blocks[0].sections[0][0].layers: found '4', expected a whole number",
        ),
        (
            "name: a\ntitle: T\nblocks: [{dataset: zinc, sections: [[{layer: 4}]]}]\n",
            "blocks[0].sections[0][0].layer: found an unknown key, expected layers",
        ),
        (
            "name: a\ntitle: T\nblocks: [{dataset: zinc, metrics: mae, sections: [[{}]]}]\n",
            "blocks[0].metrics: found an unknown key, expected metric",
        ),
        ("name: a\ntitle: T\ndatasets: Table 2\n", "datasets: found 'Table 2', expected one of Table 1, Table S2"),
        ("name: a\ntitle: T\ndatasets: Table 1\nblocks: []\n", "blocks: found an unknown key, expected one of name,"),
        ("", "found nothing, expected the keys of a layout: name, title, blocks"),
        ("- 1\n", "found a list, expected the keys of a layout: name, title, blocks"),
    ],
)
def test_what_is_wrong_names_file_key_and_what_was_expected(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ResultsError) as raised:
        read_layout(path)
    assert str(raised.value).startswith(f"{path}: {message}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("text", "line"), [("name: [\n", 2), ("name: a\nname: b\n", 2), ("a: b: c\n", 1)])
def test_what_is_not_yaml_names_the_line(tmp_path: Path, text: str, line: int) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ResultsError, match="expected valid YAML") as raised:
        read_layout(path)
    assert str(raised.value).startswith(f"{path}:{line}: ")


@pytest.mark.parametrize("content", [b"name: \xff\n", b"a: !!int\n", b"a: &a [*a]\n", b"{[1]: 2}\n"])
def test_what_the_reader_of_yaml_stumbles_over_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    with pytest.raises(ResultsError, match=r"expected (valid YAML in UTF-8|a word as the key)") as raised:
        read_layout(path)
    assert "\n" not in str(raised.value)


def test_a_name_of_any_length_is_refused_when_it_is_read_or_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"name: found 'a{50,}\.\.\.', expected 200 characters at most$"):
        read_layout(written(tmp_path, f"name: {'a' * 300}\ntitle: T\n{BLOCKS}"))
    longest = read_layout(written(tmp_path, f"name: {'a' * 200}\ntitle: T\n{BLOCKS}"))
    write_whole(tmp_path / f"{longest.name}_standalone.tex", b"")


@given(st.text(max_size=60))
def test_any_text_is_a_layout_or_one_line(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("layout") / "mine.yaml"
    path.write_bytes(text.encode("utf-8", errors="replace"))
    with pytest.raises(ResultsError) as raised:
        read_layout(path)
    assert len(str(raised.value).splitlines()) == 1


def test_a_layout_is_found_by_name_or_path_and_named_once(tmp_path: Path) -> None:
    path = written(tmp_path, f"name: graph_level\ntitle: Mine\n{BLOCKS}")
    shipped, mine = find_layouts(["placement", str(path)])
    assert (shipped.name, mine.title) == ("placement", "Mine")
    with pytest.raises(ResultsError, match="the name 'graph_level' is of two of the layouts"):
        find_layouts(["graph_level", str(path)])
    with pytest.raises(ResultsError, match=r"found 'graph_levle', expected .*; did you mean graph_level\?"):
        find_layouts(["graph_levle"])


def test_a_layout_needs_something_to_print() -> None:
    both = find_layouts(["graph_level", "datasets"])
    results, datasets = part_layouts(both, of_results=True, of_datasets=True)
    assert [layout.name for layout in (*results, *datasets)] == ["graph_level", "datasets"]
    with pytest.raises(ResultsError, match="layout graph_level: a table of results, expected RESULTS or --published"):
        part_layouts(both, of_results=False, of_datasets=True)
    with pytest.raises(ResultsError, match="layout datasets: a table of datasets, expected --statistics DATA"):
        part_layouts(both, of_results=True, of_datasets=False)


def test_the_layout_of_the_documentation_is_one(tmp_path: Path) -> None:
    docs = Path(__file__).parents[3] / "docs" / "tables.md"
    (example,) = re.findall(r"```yaml\n(.*?)```", docs.read_text(encoding="utf-8"), flags=re.DOTALL)
    layout = read_layout(written(tmp_path, example))
    assert isinstance(layout, Layout)
    assert set(Layout.model_fields) == layout.model_fields_set
    filled = fill(layout, placed_rows([row for row in paper_rows() if row.table == layout.published]))
    assert [cell.name for cell in filled.cells] == ["ZINC GCN L4", "ZINC GCN L16", "ZINC bi-GCN L4", "ZINC bi-GCN L16"]


def test_the_shipped_layouts_are_called_as_their_files_and_hold_every_row_of_the_paper_once() -> None:
    layouts = find_layouts(list(shipped_layouts()))
    assert [layout.name for layout in layouts] == list(shipped_layouts())
    assert not set(shipped_layouts()) & set(RESERVED)
    assert sorted(layout.datasets for layout in layouts if isinstance(layout, DatasetLayout)) == ["Table 1", "Table S2"]
    held: Counter[str] = Counter()
    for layout in layouts:
        if isinstance(layout, Layout):
            filled = fill(layout, placed_rows([row for row in paper_rows() if row.table == layout.published]))
            assert filled.left == ()
            places = [place for sections in filled.blocks for rows in sections for row in rows for place in row]
            assert all(place.cell for place in places)
            held[str(layout.published)] = len(places)
            # What a place without results would say is what stands there.
            for place in places:
                label = expected_label(*place.asked)
                assert label
                assert place.cell
                assert label.name == place.cell.label.name
    assert held == {"graph_level": 32, "node_edge_level": 16, "placement": 8, "small": 24}
