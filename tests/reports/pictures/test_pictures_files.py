"""Pictures as files: the same bytes, which there are, why others are not, and names of any kind."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from aggregate_command import WITHOUT, aggregate, aggregate_process
from hypothesis import given
from hypothesis import strategies as st
from made_studies import gated, runs, vanilla, worked_study, write_study
from read_pictures import gate_search, picture, searched, titles
from searched_study import VANILLA, clean_study, curve

from reports.pictures import draw_pictures
from reports.pictures.material import load_material
from reports.pictures.picture import left_out
from reports.pictures.style import STYLES, Styles, drawable, readable_ticks, wrapped
from study.compaction import compact

KINDS = (
    *("response to sigma_m within a search", "response to K within a search"),
    *("response to the gate's place within a search", "response to the budget within a search"),
    *("response to sigma_m between cells", "response to K between cells"),
    *("response to the gate's place between cells", "response to the budget between cells"),
    *("importance", "best value against trials", "rungs", "learning curves", "spread of the gate", "over-smoothing"),
)


def test_what_the_records_do_not_allow_is_skipped_with_its_reason(tmp_path: Path) -> None:
    drawn = draw_pictures(write_study(tmp_path, [vanilla("zinc", "gcn")], []))
    assert drawn.pictures == ()
    assert tuple(line.partition(":")[0] for line in drawn.skipped) == KINDS


@pytest.mark.parametrize("status", ["pruned", "failed", "diverged"])
def test_a_search_without_a_comparable_trial_draws_its_rungs_alone(tmp_path: Path, status: str) -> None:
    value = float("nan") if status == "diverged" else 0.5
    trials = [searched(place, 0.5 + place, 4, value, status) for place in range(3)]
    cell = gate_search(rungs=[2, 9])
    names = [found.name for found in draw_pictures(write_study(tmp_path, [cell], trials)).pictures]
    assert names == ["rungs"]


def test_no_picture_has_an_empty_panel(tmp_path: Path) -> None:
    for found in draw_pictures(clean_study(tmp_path)).pictures:
        assert all(axes.lines or axes.collections or axes.patches for axes in found.figure.axes)


def test_a_files_bytes_do_not_depend_on_what_was_written_before(tmp_path: Path) -> None:
    results = clean_study(tmp_path)
    first, second = draw_pictures(results).pictures, draw_pictures(results).pictures
    assert len(first) >= 3
    for one, other in zip(first, second, strict=True):
        for kind in ("pdf", "svg", "png", "png", "svg", "pdf"):
            assert one.content(kind) == other.content(kind)
        assert b"CreationDate" not in one.content("pdf")
        assert "<dc:date>" not in one.svg


def test_another_process_writes_the_same_bytes_without_torch(tmp_path: Path) -> None:
    results = clean_study(tmp_path / "results")
    words = ("figures", results, "--out")
    # Of its own hash seed, as this process has one.
    assert aggregate_process(*words, tmp_path / "1", code=WITHOUT, environment={"PYTHONHASHSEED": "1"}).returncode == 0
    assert aggregate(*words, tmp_path / "2").exit_code == 0
    one, other = ({path.name: path.read_bytes() for path in (tmp_path / seed).iterdir()} for seed in ("1", "2"))
    assert {Path(name).suffix for name in one} == {".pdf", ".svg", ".png", ".txt", ".tex"}
    assert one == other
    assert not any(str(tmp_path).encode() in content for content in one.values())


def test_compacted_records_give_the_same_pictures(tmp_path: Path) -> None:
    results = clean_study(tmp_path)
    before = [found.svg for found in draw_pictures(results).pictures]
    compact(results)
    assert [found.svg for found in draw_pictures(results).pictures] == before


def test_many_cells_become_several_pictures(tmp_path: Path) -> None:
    cells = [gated("zinc", "gcn", id=f"c{place}", num_clusters=place + 2, sigma_m=0.1 * place) for place in range(13)]
    trials = [record for cell in cells for record in runs(cell, (0.4,) * 4)]
    moved = [
        replace(record, epochs=tuple(replace(e, gate_min=0.9, gate_max=1.1, gate_std=0.1) for e in record.epochs))
        for record in trials
    ]
    drawn = draw_pictures(write_study(tmp_path, cells, moved)).pictures
    gates = [found for found in drawn if found.name.startswith("gate-spread")]
    assert [(found.name, len(found.figure.axes)) for found in gates] == [("gate-spread-1", 12), ("gate-spread-2", 1)]
    assert [found.title[-8:] for found in gates] == ["(1 of 2)", "(2 of 2)"]


def test_names_of_any_kind_are_drawn_without_a_warning(tmp_path: Path) -> None:
    odd = {**VANILLA, "dataset_title": r"R&D_100%~^\{ü}$x$ 日本 <b>"}
    results = write_study(tmp_path, [odd], [replace(r, epochs=curve([0.4, 0.3])) for r in runs(odd, (0.4,) * 4)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for found in draw_pictures(results).pictures:
            found.write(tmp_path / "figures")


def test_no_title_reaches_beyond_the_edge(tmp_path: Path) -> None:
    # Of three panels the last stands at the edge, and has fewer letters than a line may have, but wide ones.
    cells = [
        gated("enzymes", backbone, id=f"{backbone} {count}", num_clusters=count)
        for backbone in ("gcn", "gat", "graphsage")
        for count in (4, 8)
    ]
    trials = [one for cell in cells for one in runs(cell, [0.2, 0.4, 0.6, 0.8])]
    found = picture(write_study(tmp_path, cells, trials), "response-num_clusters-between-cells")
    assert titles(found)[-1] == "ENZYMES bi-GraphSAGE 100k L4"
    for axes in found.figure.axes:
        box = axes.title.get_window_extent()
        assert 0 < box.x0 < box.x1 < found.figure.bbox.x1


@given(st.text())
def test_no_line_of_a_title_is_longer_than_its_panel(text: str) -> None:
    assert all(len(line.replace(r"\$", "$")) <= 29 for line in wrapped(text).split("\n"))


def test_text_that_the_font_lacks_is_told_by_its_code_point() -> None:
    assert drawable("a$b 日") == r"a\$b [U+65E5]"
    assert wrapped("one two three", width=7) == "one two\nthree"
    assert wrapped("ZINC bi-GraphSAGE 100k L16", width=24) == "ZINC bi-GraphSAGE\n100k\N{NO-BREAK SPACE}L16"


def test_styles_differ_in_colour_or_line_and_in_line_alone_within_a_turn() -> None:
    names = ("vanilla", "bi", "uniform", *(f"arm {place}" for place in range(12)))
    styles = Styles(names=names)
    assert [styles[name] for name in ("vanilla", "bi", "uniform")] == list(STYLES[:3])
    assert len({(styles[name][0], str(styles[name][1])) for name in names}) == len(names)
    assert len({str(styles[name][1]) for name in names[:7]}) == 7


def test_colours_stay_apart_in_grey_or_differ_in_marker() -> None:
    assert len({marker for _, _, marker in STYLES}) == len({colour for colour, _, _ in STYLES}) == len(STYLES)


def test_ticks_that_would_touch_are_left_out() -> None:
    """0.15 of the way from 1 to 100 by logarithms is 10 ** 0.3, about 2."""
    assert readable_ticks([1.0, 1.5, 10.0, 80.0, 100.0]) == [1.0, 10.0, 100.0]
    assert readable_ticks([3.0]) == [3.0]


def test_a_reason_names_three_cells_and_counts_the_rest() -> None:
    assert left_out("rungs", ["a", "b", "c", "d", "e"], "why") == ("rungs: a, b, c and 2 more: why",)
    assert left_out("rungs", ["a", "b", "c"], "why") == ("rungs: a, b, c: why",)
    assert left_out("rungs", [], "why") == ()


def test_a_study_of_one_seed_and_equal_values_is_drawn(tmp_path: Path) -> None:
    cell = gated("zinc", "gcn", seeds=[41])
    results = write_study(tmp_path, [cell], runs(cell, (0.4,)))
    (material,) = load_material(results).cells
    assert len(material.confirm) == 1
    assert [found.name for found in draw_pictures(results).pictures] == ["learning-curves"]


def test_the_command_tells_what_it_drew(tmp_path: Path) -> None:
    results = worked_study(tmp_path)
    done = aggregate("figures", results)
    assert done.exit_code == 0
    assert f"{results}/figures/learning-curves.pdf\n" in done.stdout
    assert (results / "figures" / "learning-curves.tex").read_text(encoding="ascii").startswith("% Needs")
    assert all(line.startswith("skipped: ") for line in done.stderr.splitlines())


def test_a_study_with_nothing_to_draw_ends_in_one_line_and_code_2(tmp_path: Path) -> None:
    results = write_study(tmp_path, [vanilla("zinc", "gcn")], [])
    done = aggregate("figures", results)
    assert done.exit_code == 2
    *told, last = done.stderr.splitlines()
    assert len(told) == len(KINDS)
    assert last == f"error: {results}: found nothing to draw; run the study first"
