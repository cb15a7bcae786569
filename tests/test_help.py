"""``--help`` of every command, on a terminal of 80 columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.core import TyperOption
from typer.testing import CliRunner

import aggregate
import run_study
from study.command_help import HelpfulCommand, HelpfulGroup

PROGRAMS = {"run_study.py": run_study.app, "aggregate.py": aggregate.app}
COLUMNS = 80


def commands() -> Iterator[tuple[str, str, Any]]:
    for program, app in PROGRAMS.items():
        group: Any = typer.main.get_command(app)
        yield from ((program, name, command) for name, command in group.commands.items())


COMMANDS = [pytest.param(*command, id=f"{command[0]}-{command[1]}") for command in commands()]


def shown(app: typer.Typer, *arguments: str, program: str = "run_study.py", columns: int = COLUMNS) -> str:
    done = CliRunner().invoke(app, [*arguments, "--help"], prog_name=program, terminal_width=columns - 2)
    assert done.exit_code == 0, done.output
    return done.output


def parameters(command: Any) -> list[Any]:
    return [each for each in command.params if each.name != "help"]


@pytest.mark.parametrize(("program", "name", "command"), COMMANDS)
class TestACommand:
    def test_says_what_it_is_for_in_sentences(self, program: str, name: str, command: Any) -> None:
        assert isinstance(command, HelpfulCommand)
        for paragraph in command.help.strip().split("\n\n"):
            assert re.fullmatch(r"[A-Z].*\.", paragraph.strip(), re.DOTALL), paragraph

    def test_has_a_help_text_for_each_argument_and_option(self, program: str, name: str, command: Any) -> None:
        for each in parameters(command):
            assert each.help, each.name
            assert re.match(r"[A-Z.]|[a-z0-9]+[,.]", each.help), f"{each.name}: {each.help}"

    def test_fits_the_terminal(self, program: str, name: str, command: Any) -> None:
        page = shown(PROGRAMS[program], name, program=program)
        assert max(map(len, page.splitlines())) <= COLUMNS
        assert page.splitlines()[0].startswith(f"Usage: python {program} {name} ")
        assert page.splitlines()[1] == "", "the usage is one line"

    def test_shows_each_word_of_its_texts_whole(self, program: str, name: str, command: Any) -> None:
        words = shown(PROGRAMS[program], name, program=program).split()
        told = f"{command.help} {' '.join(each.help for each in parameters(command))}".split()
        assert not set(told) - set(words)

    def test_names_what_a_value_is_and_flags_once(self, program: str, name: str, command: Any) -> None:
        page = shown(PROGRAMS[program], name, program=program)
        assert "<" not in page, "a type of Python"
        assert "--no-" not in page
        for each in parameters(command):
            if isinstance(each, TyperOption):
                assert re.search(rf"^  {each.opts[0]}( [A-Z|a-z]+)?(  |$)", page, re.MULTILINE), each.opts
                assert each.is_flag or each.metavar

    def test_names_a_default_wherever_something_is_taken_unasked(self, program: str, name: str, command: Any) -> None:
        page = " ".join(shown(PROGRAMS[program], name, program=program).split())
        for each in parameters(command):
            if isinstance(each, TyperOption) and not each.is_flag and each.default is not None:
                assert re.search(rf"{each.opts[0]} \S+ [^\[]*\[[^\]]*default: [^\]]+\]", page), each.opts

    def test_gives_an_example_that_it_takes(self, program: str, name: str, command: Any) -> None:
        page = shown(PROGRAMS[program], name, program=program)
        _, examples = re.split(r"^Examples?:$", page, flags=re.MULTILINE)
        options = {option for each in command.params for option in each.opts}
        for example in examples.strip().splitlines():
            assert example.strip().startswith(f"python {program} {name}")
            assert set(re.findall(r"--[\w-]+", example)) <= options


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_shows_every_command_with_its_first_paragraph(program: str) -> None:
    app = PROGRAMS[program]
    page = shown(app, program=program)
    assert isinstance(typer.main.get_command(app), HelpfulGroup)
    assert max(map(len, page.splitlines())) <= COLUMNS
    said = " ".join(page.split())
    for of, name, command in commands():
        if of == program:
            assert f"{name} {' '.join(command.help.split(chr(10) * 2)[0].split())}" in said


def test_the_installed_program_is_named_as_it_is_called() -> None:
    page = shown(run_study.app, "plan", program="run-study")
    assert page.startswith("Usage: run-study plan FILE [OPTIONS]\n")
    assert "  run-study plan search_spaces/quickstart.yaml\n" in page


def test_a_page_in_full() -> None:
    assert shown(run_study.app, "status") == (
        "Usage: python run_study.py status RESULTS [OPTIONS]\n"
        "\n"
        "  Show how the study in RESULTS stands: cells, trials, best values, faults.\n"
        "\n"
        "  It reads the records alone, so it works while the study runs, from another\n"
        "  machine, and after it died.\n"
        "\n"
        "Arguments:\n"
        "  RESULTS  Results folder of the study, or its URL (s3://BUCKET/FOLDER,\n"
        "           gs://...).\n"
        "\n"
        "Options:\n"
        "  --all   Name every trial that failed or diverged, not only the first 20.\n"
        "  --help  Show this page.\n"
        "\n"
        "Example:\n"
        "  python run_study.py status results/quickstart\n"
    )


def test_options_of_a_command_with_many_stand_in_groups() -> None:
    titles = re.findall(r"^(\w.*):$", shown(run_study.app, "run"), re.MULTILINE)
    assert titles == ["Arguments", "Where things lie", "Where it runs", "Options", "Examples"]


def test_a_narrow_terminal_wraps_the_same_text() -> None:
    page = shown(run_study.app, "run", columns=60)
    assert max(len(line) for line in page.split("Examples:")[0].splitlines()) <= 60
    assert page.split() == shown(run_study.app, "run").split()


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_called_with_nothing_shows_its_page(program: str) -> None:
    done = CliRunner().invoke(PROGRAMS[program], [], prog_name=program, terminal_width=COLUMNS - 2)
    assert done.output.strip() == shown(PROGRAMS[program], program=program).strip()
    assert done.exit_code == 2


def test_a_mistake_in_the_call_is_told_with_the_usage() -> None:
    done = CliRunner().invoke(run_study.app, ["plan"], prog_name="run_study.py")
    assert done.exit_code == 2
    assert done.output.splitlines()[0] == "Usage: run_study.py plan FILE [OPTIONS]"
    assert done.output.splitlines()[-1] == "Error: Missing argument 'FILE'."
