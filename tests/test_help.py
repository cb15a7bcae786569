"""``--help`` of every command, on a terminal of 80 columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import aggregate
import run_study

PROGRAMS = {"run_study.py": run_study.app, "aggregate.py": aggregate.app}


def commands() -> Iterator[tuple[str, str, Any]]:
    for program, app in PROGRAMS.items():
        group: Any = typer.main.get_command(app)
        yield from ((program, name, command) for name, command in group.commands.items())


COMMANDS = [pytest.param(*command, id=f"{command[0]}-{command[1]}") for command in commands()]


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 80)


def page_of(program: str, *command: str) -> str:
    done = CliRunner().invoke(PROGRAMS[program], [*command, "--help"], prog_name=program)
    assert done.exit_code == 0, done.output
    return done.output


def words_on(page: str) -> list[str]:
    """Without the lines that are drawn around them."""
    return re.sub(r"[─│╭╮╰╯]", " ", page).split()


def parameters(command: Any) -> list[Any]:
    return [each for each in command.params if each.name != "help"]


@pytest.mark.parametrize(("program", "name", "command"), COMMANDS)
class TestACommand:
    def test_says_what_it_is_for_in_sentences(self, program: str, name: str, command: Any) -> None:
        for paragraph in command.help.strip().split("\n\n"):
            assert re.fullmatch(r"[A-Z].*\.", paragraph.strip(), re.DOTALL), paragraph

    def test_has_a_help_text_for_each_argument_and_option(self, program: str, name: str, command: Any) -> None:
        for each in parameters(command):
            assert each.help, each.name
            assert re.match(r"[A-Z.]|[a-z0-9]+[,.]", each.help), f"{each.name}: {each.help}"

    def test_fits_the_terminal(self, program: str, name: str, command: Any) -> None:
        page = page_of(program, name)
        assert max(map(len, page.splitlines())) <= 80
        assert f" Usage: {program} {name} " in page

    def test_shows_each_word_of_its_texts_whole(self, program: str, name: str, command: Any) -> None:
        told = f"{command.help} {' '.join(each.help for each in parameters(command))}".split()
        assert not set(told) - set(words_on(page_of(program, name)))

    def test_names_a_default_wherever_something_is_taken_unasked(self, program: str, name: str, command: Any) -> None:
        page = " ".join(words_on(page_of(program, name)))
        for each in parameters(command):
            if each.param_type_name == "option" and not each.is_flag and each.default is not None:
                assert re.search(rf"{each.opts[0]} \S+ [^\[]*(\[env var: \w+\] )?\[default: [^\]]+\]", page), each.opts

    def test_gives_an_example_that_it_takes(self, program: str, name: str, command: Any) -> None:
        heading, *examples = command.epilog.split("\n\n")
        assert heading == ("Example:" if len(examples) == 1 else "Examples:")
        options = {option for each in command.params for option in each.opts}
        for example in examples:
            assert re.fullmatch(rf"- `python {program} {name}( .+)?`", example)
            assert set(re.findall(r"--[\w-]+", example)) <= options


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_shows_every_command_with_its_first_paragraph(program: str) -> None:
    page = page_of(program)
    assert max(map(len, page.splitlines())) <= 80
    said = " ".join(words_on(page))
    for of, name, command in commands():
        if of == program:
            assert f"{name} {' '.join(command.help.split(chr(10) * 2)[0].split())}" in said


def test_options_of_a_command_with_many_stand_in_groups() -> None:
    titles = re.findall(r"^╭─ ([\w ]+) ─", page_of("run_study.py", "run"), re.MULTILINE)
    assert titles == ["Arguments", "Options", "Where things lie", "Where it runs"]
