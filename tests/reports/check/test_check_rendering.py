"""Findings in words: a line a finding."""

from dataclasses import replace
from io import StringIO
from pathlib import Path

from made_studies import write_study
from one_fault import is_gated_confirm, keys
from rich.console import Console
from searched_study import VANILLA, changed, clean_study

from reports.check import check
from reports.check.rendering import finding_lines, finding_table, summary_line


def test_a_line_a_finding(tmp_path: Path) -> None:
    findings = check(clean_study(tmp_path, changed(is_gated_confirm, test_metric=0.3, git_dirty=True)))
    lines = finding_lines(findings)
    a, b, c, d = keys(is_gated_confirm)
    assert lines[0] == (
        "forbids changed-code: made: 4 of the 8 runs behind the table with changed files; files differed from the "
        "commit, so nobody can get back the code that made these numbers; to mend: commit, and run the study again in "
        f"a new results folder [trials: {a}, {b}, {c}, {d}]"
    )
    assert lines[1].startswith("warns zero-spread: made: ZINC bi-GCN 100k L4: all 4 runs have")
    assert len(lines) == 2
    assert summary_line(findings, 1) == "1 finding that forbids publishing, 1 warning in 1 study: do not publish yet"
    assert summary_line([findings[0], *findings], 1) == (
        "2 findings that forbid publishing, 1 warning in 1 study: do not publish yet"
    )
    assert summary_line((), 2) == "nothing found in 2 studies"


def test_a_line_names_four_trials_and_counts_the_rest(tmp_path: Path) -> None:
    (four, _) = check(clean_study(tmp_path, changed(is_gated_confirm, test_metric=0.3, git_dirty=True)))
    five = replace(four, keys=(*four.keys, "z"))
    assert [line.partition("[trials: ")[2] for line in finding_lines([four, five])] == [
        f"{', '.join(four.keys)}]",
        f"{', '.join(four.keys)} and 1 more]",
    ]


def test_the_table_says_where_once(tmp_path: Path) -> None:
    findings = check(clean_study(tmp_path, changed(is_gated_confirm, test_metric=0.3, git_dirty=True)))
    stream = StringIO()
    Console(file=stream, width=200).print(finding_table(findings))
    rows = [line.split("│") for line in stream.getvalue().splitlines() if "changed files" in line or "all 4" in line]
    assert [row[2].strip() for row in rows] == ["made", "made: ZINC bi-GCN 100k L4"]


def test_names_cannot_break_a_line(tmp_path: Path) -> None:
    odd = {**VANILLA, "dataset_title": "R&D_100%\n\x1b[31m{ü}"}
    (line,) = finding_lines(check(write_study(tmp_path, [odd], [])))
    assert line.isprintable()
    assert "R&D_100% [31m{ü} GCN" in line
