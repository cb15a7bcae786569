"""Commands that README, docs and help name: they exist, take the options named, and mean what they say."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

import aggregate
import run_study
from reports.evidence.cell_evidence import evidence
from reports.evidence.find_cell import find_cell
from study.plan import plan, plan_document
from study.spec import load_study

ROOT = Path(__file__).parent.parent
GROUPS: dict[str, Any] = {
    "run_study.py": typer.main.get_command(run_study.app),
    "aggregate.py": typer.main.get_command(aggregate.app),
}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TOLD = re.compile(r"(run_study\.py|aggregate\.py)[ \n]+([a-z][a-z-]+)([^`\n#|]*)")


def examples_in_help() -> str:
    commands = [each for group in GROUPS.values() for each in (group, *group.commands.values())]
    return "\n".join(each.epilog for each in commands if each.epilog)


TEXTS = {**{page.name: page.read_text(encoding="utf-8") for page in PAGES}, "help": examples_in_help()}


@pytest.mark.parametrize("name", TEXTS)
def test_every_command_that_is_told_exists_and_has_the_options(name: str) -> None:
    for program, command, rest in TOLD.findall(TEXTS[name]):
        known = GROUPS[program].commands
        if command not in known:
            # Prose goes on after the program's name, as in "what run_study.py wrote".
            assert f"python {program} {command}" not in TEXTS[name], f"{program} {command}"
            continue
        options = {option for each in known[command].params for option in each.opts} | {"--help"}
        assert set(re.findall(r"--[a-z][a-z-]*", rest)) <= options, f"{program} {command}{rest}"


def words_of_cells() -> list[tuple[str, str]]:
    """Shipped studies, and the words by which one cell of each is told."""
    told = []
    for text in TEXTS.values():
        for program, command, rest in TOLD.findall(text):
            match = re.search(r'results/(\w+) ("[^"]+")', rest)
            if match and command in GROUPS[program].commands:
                told.append((match[1], shlex.split(match[2])[0]))
    return told


@pytest.mark.parametrize(("study", "words"), words_of_cells())
def test_words_that_are_told_name_one_cell_of_their_study(tmp_path: Path, study: str, words: str) -> None:
    planned = plan(load_study(ROOT / "search_spaces" / f"{study}.yaml"))
    (tmp_path / "plan.json").write_text(json.dumps(plan_document(planned)))
    (tmp_path / "records").mkdir()
    assert find_cell(evidence(tmp_path), words).cell in {cell.id for cell in planned.cells}


def test_words_of_cells_are_found_in_readme_and_help() -> None:
    assert {study for study, _ in words_of_cells()} == {"zinc_100k", "quickstart"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
