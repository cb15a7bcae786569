from __future__ import annotations

import io
import re
import threading
from dataclasses import replace

import pytest
from rich.console import Console

from study.live_view import LiveView, plain_line, render_view
from study.progress import CellGoal, CellLine, StudyView


def line(cell: str = "digits-gcn-boosting-L4-100k", **changes: object) -> CellLine:
    goal = CellGoal(cell=cell, metric="accuracy", direction="max", trials=8, confirm_trials=4, max_epochs=9)
    nothing = CellLine(
        goal=goal,
        searched=0,
        repeated=0,
        running=0,
        pruned=0,
        diverged=0,
        failed=0,
        confirmed=0,
        best=None,
        ended=False,
    )
    return replace(nothing, **changes)  # type: ignore[arg-type]


def view(*cells: CellLine, seconds_left: float | None = None, slots: int | None = 2) -> StudyView:
    return StudyView(
        study="quickstart",
        cells=cells,
        running=sum(cell.running for cell in cells),
        slots=slots,
        ended=sum(cell.searched + cell.confirmed for cell in cells),
        total=12 * len(cells),
        seconds_left=seconds_left,
    )


def shown(seen: StudyView, most_cells: int | None = None, width: int = 100) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(render_view(seen, most_cells))
    assert isinstance(console.file, io.StringIO)
    return [row.rstrip() for row in console.file.getvalue().splitlines()]


def test_a_cell_shows_how_far_it_is() -> None:
    rows = shown(view(line(searched=5, running=1, pruned=3, diverged=1, failed=2, confirmed=0, best=0.87654)))
    assert rows[1].split() == ["best"]
    assert rows[2].split() == ["cell", "search", "running", "pruned", "failed", "accuracy", "confirm"]
    numbers = ["5/8", "1", "3", "2", "+", "1", "diverged", "0.8765", "0/4"]
    assert rows[3].split() == ["digits-gcn-boosting-L4-100k", *numbers]


def test_a_metric_stands_with_its_value_where_cells_have_different_ones() -> None:
    other = line("zinc-gcn-none-L4-100k", best=0.25)
    rows = shown(view(line(best=0.5), replace(other, goal=replace(other.goal, metric="mae"))))
    assert "0.5000 accuracy" in rows[2]
    assert "0.2500 mae" in rows[3]


def test_what_is_not_there_is_a_dash() -> None:
    assert shown(view(line()))[3].split() == ["digits-gcn-boosting-L4-100k", "0/8", "-", "-", "-", "-", "0/4"]
    without_search = line()
    without_search = replace(without_search, goal=replace(without_search.goal, trials=0))
    assert shown(view(without_search))[3].split()[1] == "-"


def test_names_of_cells_are_whole_at_a_hundred_columns() -> None:
    name = "digits-gated_gcn-interleaved-L16-500k-uniform"
    rows = shown(view(line(name, searched=8, running=1, pruned=10, best=0.5)))
    assert rows[3].split()[0] == name


def test_on_a_narrow_terminal_a_name_is_folded_and_numbers_stay_whole() -> None:
    name = "digits-gated_gcn-interleaved-L16-500k-uniform-max"
    rows = shown(view(line(name, searched=8, best=0.5)), width=80)
    folded = [row.split(" ")[0] for row in rows[3:]]
    assert "".join(folded) == name
    assert "8/8" in rows[3]
    assert "0.5000" in rows[3]
    assert all(len(row) <= 80 for row in rows)


def test_where_lines_are_few_cells_at_work_come_first() -> None:
    cells = [line(f"cell-{number}", confirmed=4 if number < 3 else 0) for number in range(8)]
    cells[6] = replace(cells[6], running=2)
    rows = shown(view(*cells), most_cells=3)
    assert [row.split()[0] for row in rows[3:6]] == ["cell-3", "cell-4", "cell-6"], "in the order of the plan"
    assert rows[6] == "and 5 more cells"
    assert not [row for row in shown(view(*cells), most_cells=8) if "more cells" in row]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "about 1 s left"),
        (89.4, "about 89 s left"),
        (90.0, "about 2 min left"),
        (5399.0, "about 90 min left"),
        (5400.0, "about 1.5 h left"),
        (360_000.0, "about 100.0 h left"),
    ],
)
def test_time_left_is_told_in_the_unit_that_fits(seconds: float, words: str) -> None:
    assert plain_line(view(line(), seconds_left=seconds)).endswith(words)


def test_the_plain_line_says_all_that_matters() -> None:
    seen = view(
        line("a-cell", searched=8, pruned=5, confirmed=1, running=1, best=0.5),
        line("b-cell", searched=2, diverged=1, running=1),
        seconds_left=30.0,
    )
    assert plain_line(seen) == (
        "quickstart: 11/24 trials, 2 of 2 slots running, 5 pruned, 1 failed or diverged, about 30 s left; "
        "best so far: a-cell 0.5000 accuracy"
    )
    assert plain_line(view(line(), slots=None)) == "quickstart: 0/12 trials, 0 running, 0 pruned"


def test_a_finished_study_has_no_time_left() -> None:
    assert "left" not in plain_line(view(line(searched=8, confirmed=4), seconds_left=0.0))


def test_without_a_terminal_the_last_state_is_one_plain_line() -> None:
    console = Console(file=io.StringIO(), width=40)
    with LiveView(lambda: view(line(searched=8, confirmed=4, best=0.5)), console):
        pass
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == (
        "quickstart: 12/12 trials, 0 of 2 slots running, 0 pruned; best so far: digits-gcn-boosting-L4-100k 0.5000 "
        "accuracy\n"
    )


def test_on_a_terminal_the_view_is_drawn_in_place_and_stays_at_the_end() -> None:
    console = Console(file=io.StringIO(), width=100, height=30, force_terminal=True, color_system=None)
    looks = 0
    twice = threading.Event()

    def look() -> StudyView:
        nonlocal looks
        looks += 1
        if looks > 2:
            twice.set()
        return view(line(searched=looks))

    with LiveView(look, console):
        assert twice.wait(30), "it looks again and again by itself"
    assert isinstance(console.file, io.StringIO)
    drawn = console.file.getvalue()
    assert drawn.count("\x1b[1A") >= 2, "lines are written over, not below"
    text = re.sub(r"\x1b\[[0-9?;]*[A-Za-z]", "", drawn)
    assert f"{looks}/8" in text.splitlines()[-1]


def test_an_error_of_the_study_passes_through() -> None:
    console = Console(file=io.StringIO())
    with pytest.raises(KeyError), LiveView(lambda: view(line()), console):
        raise KeyError
