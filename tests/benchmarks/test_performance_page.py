"""docs/performance.md is written in parts, each by its own benchmark."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.machines import by_machine, keep
from benchmarks.page import PARTS, PERFORMANCE, Table, processor, with_part

TABLE = Table(title="Speed", note="A note.", columns=("What", "ms"), rows=(("a", "1"),), labels=1)


def test_a_part_takes_the_place_of_its_last_version_and_leaves_the_others() -> None:
    page = with_part("# Performance\n", "paper_cost", "Cost", ["Old."], [TABLE])
    page = with_part(page, "step", "Steps", ["First."], [])
    page = with_part(page, "paper_cost", "Cost", ["New."], [TABLE])
    body = page.split("do not edit.\n\n", 1)[1]
    assert body == (
        "<!-- step -->\n\n## Steps\n\nFirst.\n\n<!-- end of step -->\n\n"
        "<!-- paper_cost -->\n\n## Cost\n\nNew.\n\n### Speed\n\nA note.\n\n"
        "| What | ms |\n| --- | ---: |\n| a | 1 |\n\n<!-- end of paper_cost -->\n"
    )


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(ValueError, match="part: found 'steps', expected one of step, "):
        with_part("", "steps", "Steps", [], [])


def test_the_page_that_is_there_is_made_of_parts_alone() -> None:
    page = PERFORMANCE.read_text("utf-8")
    for part in PARTS:
        assert page.count(f"<!-- {part} -->") <= 1
        assert page.count(f"<!-- {part} -->") == page.count(f"<!-- end of {part} -->")


def test_a_machine_replaces_what_it_noted_and_stands_beside_the_others(tmp_path: Path) -> None:
    noted = tmp_path / "machines.csv"
    noted.write_text("machine,target,measured\nA,speed,2.00\nB,speed,1.50\nB,memory,0.20\n", encoding="utf-8")
    keep(noted, "B", [("speed", "1.60"), ("loading", "0.5%")])
    table = by_machine(noted)
    assert table.columns == ("Target", "A", "B")
    assert table.rows == (("speed", "2.00", "1.60"), ("memory", "-", "0.20"), ("loading", "-", "0.5%"))


def test_processors_of_one_name_are_told_apart_by_family_and_model(tmp_path: Path) -> None:
    described = tmp_path / "cpuinfo"
    described.write_text("model name\t: Chip\ncpu family\t: 25\nmodel\t\t: 17\n\ncpu family\t: 26\n", encoding="utf-8")
    assert processor(described) == "Chip (family 25, model 17)"
