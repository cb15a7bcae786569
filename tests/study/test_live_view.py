from __future__ import annotations

import io
import re
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from study.causes import Trouble
from study.duration import duration
from study.live_view import LiveView, plain_line, plain_pause, render_view
from study.progress import CellLine, StudyView
from study.tally import CellGoal
from study.time_left import TimeLeft
from study.view_lines import view_lines
from study.view_table import folded


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
        confirm_trials=4,
        best=None,
        ended=False,
    )
    return replace(nothing, **changes)  # type: ignore[arg-type]


def judged(seconds: float, ended: int = 7, borrowed: int = 0) -> TimeLeft:
    return TimeLeft(seconds=seconds, ended=ended, borrowed=borrowed)


def view(
    *cells: CellLine,
    time_left: TimeLeft | None = None,
    slots: int | None = 2,
    troubles: tuple[Trouble, ...] = (),
    at_work: bool = True,
) -> StudyView:
    return StudyView(
        study="quickstart",
        cells=cells,
        running=sum(cell.running for cell in cells),
        slots=slots,
        ended=sum(cell.searched + cell.confirmed for cell in cells),
        total=12 * len(cells),
        time_left=time_left,
        troubles=troubles,
        at_work=at_work,
    )


def shown(seen: StudyView, width: int = 100, height: int | None = None) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(render_view(seen, width, height))
    assert isinstance(console.file, io.StringIO)
    return [row.rstrip() for row in console.file.getvalue().splitlines()]


def test_a_cell_shows_how_far_it_is() -> None:
    troubles = (Trouble("failed", "OSError: gone", 2, 1), Trouble("diverged", "epoch 1: loss nan in training", 1, 1))
    seen = view(line(searched=5, running=1, pruned=3, diverged=1, failed=2, best=0.87654), troubles=troubles)
    assert shown(seen) == [
        "━━━━━━━━━━━━━━━━━━━━ quickstart: 5/12 trials",
        "1 of 2 slots running, 3 pruned, 1 diverged, 2 failed, time left: not known before a trial has ended",
        "cell                         search  running  pruned  diverged  failed  best accuracy  confirm",
        "digits-gcn-boosting-L4-100k     5/8        1       3         1       2         0.8765      0/4",
        "2 failed: OSError: gone",
        "1 diverged: epoch 1: loss nan in training",
    ]


def test_trials_that_are_trained_together_take_fewer_slots_than_they_are() -> None:
    assert shown(view(line(running=3)))[1].startswith("3 running in 2 slots, ")


def test_a_metric_stands_with_its_value_where_cells_have_different_ones() -> None:
    other = line("zinc-gcn-none-L4-100k", best=0.25)
    rows = shown(view(line(best=0.5), replace(other, goal=replace(other.goal, metric="mae"))))
    assert "0.5000 accuracy" in rows[3]
    assert "0.2500 mae" in rows[4]


def test_what_is_not_there_is_a_dash() -> None:
    assert shown(view(line()))[3].split() == ["digits-gcn-boosting-L4-100k", "0/8", "-", "-", "-", "0/4"]
    without_search = line()
    without_search = replace(without_search, goal=replace(without_search.goal, trials=0))
    assert shown(view(without_search))[3].split()[1] == "-"


def test_a_search_that_chose_nothing_shows_no_confirm_trials_to_come() -> None:
    assert shown(view(line(searched=8, diverged=8, confirm_trials=0, ended=True)))[3].split()[-1] == "-"


def test_of_a_study_that_stopped_trials_are_unfinished() -> None:
    rows = shown(view(line(searched=2, running=2), slots=None, at_work=False))
    assert rows[1] == "2 unfinished, 0 pruned"
    assert rows[2].split()[:3] == ["cell", "search", "unfinished"]


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
    assert "pruned" in rows[2]
    assert "pruned" not in shown(view(line(name)), width=70)[2], "the count above says it; the name needs the room"
    assert "0.5000" in rows[3]
    assert all(len(row) <= 80 for row in rows)


def test_where_lines_are_few_cells_at_work_come_first() -> None:
    cells = [line(f"cell-{number}", ended=number < 3, searched=8 if number < 3 else 0) for number in range(9)]
    cells[6] = replace(cells[6], running=2)
    cells[7] = replace(cells[7], searched=1)
    rows = shown(view(*cells), height=6)
    assert [row.split()[0] for row in rows[3:5]] == ["cell-6", "cell-7"], "at work, begun; in the order of the plan"
    assert rows[5] == "and 7 more cells: 3 ended, 4 not begun"
    assert [row.split()[0] for row in shown(view(*cells), height=12)[3:]] == [f"cell-{number}" for number in range(9)]
    assert shown(view(*cells), height=4)[-1] == "and 9 cells: 1 at work, 3 ended, 1 waiting, 4 not begun"


def test_causes_are_few_lines_and_the_rest_a_count() -> None:
    troubles = tuple(Trouble("failed", f"cause {number}", 9 - number, 1 + number % 2) for number in range(6))
    rows = shown(view(line(failed=39), troubles=troubles))
    assert rows[-4:] == ["9 failed: cause 0", "8 failed in 2 cells: cause 1", "7 failed: cause 2", "and 3 other causes"]


@given(
    cells=st.integers(0, 60),
    width=st.integers(20, 160),
    height=st.integers(1, 60),
    causes=st.integers(0, 8),
    letters=st.integers(1, 90),
)
def test_it_is_never_larger_than_the_terminal(cells: int, width: int, height: int, causes: int, letters: int) -> None:
    lines = [
        line(f"{number}-{'c' * letters}", searched=number, running=number % 3, failed=causes, best=number / 7)
        for number in range(cells)
    ]
    troubles = tuple(Trouble("failed", f"cause {number} " + "long " * 40, 1, 1) for number in range(causes))
    rows = view_lines(view(*lines, troubles=troubles, time_left=judged(3.0)), width, height)
    assert len(rows) <= height
    assert all(row.cell_len <= width for row in rows)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "1 s"),
        (89.4, "89 s"),
        (90.0, "2 min"),
        (5399.0, "90 min"),
        (5400.0, "1.5 h"),
        (172_799.0, "48.0 h"),
        (360_000.0, "4.2 days"),
    ],
)
def test_time_left_is_told_in_the_unit_that_fits(seconds: float, words: str) -> None:
    assert duration(seconds) == words
    assert f"about {words} left (from 7 ended trials)" in plain_line(view(line(), time_left=judged(seconds)))


def test_the_plain_line_says_all_that_matters() -> None:
    seen = view(
        line("a-cell", searched=8, pruned=5, confirmed=1, running=1, best=0.5),
        line("b-cell", searched=2, diverged=1, running=1),
        time_left=judged(30.0, ended=1, borrowed=1),
        troubles=(Trouble("diverged", "epoch 1: loss nan in training", 1, 1),),
    )
    assert plain_line(seen) == (
        "quickstart: 11/24 trials, 2 of 2 slots running, 5 pruned, 1 diverged, about 30 s left (from 1 ended "
        "trial; 1 cell has none); best so far: a-cell 0.5000 accuracy; 1 diverged: epoch 1: loss nan in training"
    )
    assert plain_line(view(line(), slots=None)) == "quickstart: 0/12 trials, 0 running, 0 pruned"


def test_a_finished_study_has_no_time_left() -> None:
    assert "left" not in plain_line(view(line(searched=8, confirmed=4), time_left=judged(0.0)))


def test_plain_lines_of_three_days_are_no_flood() -> None:
    age, lines = 0.0, 0
    while age < 3 * 86400:
        age += plain_pause(age)
        lines += 1
    assert (plain_pause(0), plain_pause(3600), plain_pause(86400)) == (15.0, 72.0, 600.0)
    assert 500 < lines < 700


def test_without_a_terminal_the_last_state_is_one_plain_line() -> None:
    console = Console(file=io.StringIO(), width=40)
    with LiveView(lambda: view(line(searched=8, confirmed=4, best=0.5)), console):
        pass
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == (
        "quickstart: 12/12 trials, 0 of 2 slots running, 0 pruned; best so far: digits-gcn-boosting-L4-100k 0.5000 "
        "accuracy\n"
    )


def test_a_plain_line_is_not_said_again_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("study.live_view.plain_pause", lambda age_s: 0.0)
    seen, looks, twice = view(line(searched=8, confirmed=4)), 0, threading.Event()

    def look() -> StudyView:
        nonlocal looks
        looks += 1
        if looks > 1:
            twice.set()
        return seen

    screen = io.StringIO()
    with LiveView(look, Console(file=screen)):
        assert twice.wait(30), "it looks again and again by itself"
    assert screen.getvalue() == plain_line(seen) + "\n"


def test_plain_lines_are_text_alone_whatever_a_cause_holds() -> None:
    seen = view(line(failed=1), troubles=(Trouble("failed", "OSError: [Errno 28] No space [bold]", 1, 1),))
    console = Console(file=io.StringIO(), width=40, force_terminal=False)
    with LiveView(lambda: seen, console):
        pass
    assert isinstance(console.file, io.StringIO)
    written = console.file.getvalue()
    assert written == plain_line(seen) + "\n"
    assert written.removesuffix("\n").isprintable()


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
    assert "\x1b[?25h" in drawn, "the cursor is shown again"


def test_an_error_of_the_study_passes_through() -> None:
    console = Console(file=io.StringIO())
    with pytest.raises(KeyError), LiveView(lambda: view(line()), console):
        raise KeyError


def test_a_trial_that_no_worker_has_waits_and_is_not_said_to_run() -> None:
    seen = replace(view(line(searched=2, running=1, waiting=1)), waiting=1)
    assert plain_line(seen).startswith(
        "quickstart: 2/12 trials, 1 of 2 slots running, 1 waiting for a worker, 0 pruned"
    )
    assert "1 of 2 slots running, 1 waiting for a worker, 0 pruned" in "\n".join(shown(seen))


def test_a_name_is_folded_where_its_words_end() -> None:
    assert folded("digits-gcn-boosting-L3-20k-uniform", 31) == ["digits-gcn-boosting-L3-20k-", "uniform"]
    assert folded("zinc-gcn-none-L4-20k-precision_bfloat16", 36) == ["zinc-gcn-none-L4-20k-precision_", "bfloat16"]
    assert folded("a-averylongwordwithoutend", 12) == ["a-averylongw", "ordwithouten", "d"]
    assert folded("short", 5) == ["short"]


@given(st.text("ab-_", min_size=1, max_size=60), st.integers(1, 20))
def test_folding_keeps_every_letter_and_the_room(name: str, room: int) -> None:
    lines = folded(name, room)
    assert "".join(lines) == name
    assert all(0 < len(part) <= room for part in lines)
