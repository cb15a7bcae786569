"""docs/performance.md is written in parts, each by its own benchmark."""

from __future__ import annotations

import pytest

from benchmarks.page import PARTS, PERFORMANCE, Table, with_part

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
