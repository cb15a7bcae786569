"""Lists in the docs that are to hold all there is: what is added to the code without a word there fails here."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from dataclasses import fields
from pathlib import Path

import pytest
import typer
from told_pages import ROOT, first_names, named, page, rows, section

import reports.check
import run_study
from benchmarks.faults.leases import LEASE_SCENARIOS
from benchmarks.faults.lost_ray import RAY_SCENARIOS
from benchmarks.faults.mirror_scenarios import MIRROR_SCENARIOS
from benchmarks.faults.scenarios import SCENARIOS
from benchmarks.faults.stopped import STOP_SCENARIOS
from bimp.data.manifest import Manifest
from bimp.data.sources import SOURCES
from bimp.data.statistics import DatasetStatistics
from bimp.semantics import SETTINGS
from bimp.tasks import TASKS
from reports.check.finding import Kind
from reports.layout.layout_file import Selector
from reports.layout.layout_reader import shipped_layouts
from reports.page.assemble import PAGE_FILE
from reports.pictures import Drawn, Picture
from study.node_data import STORE_FOLDER
from study.results import ResultsFolder
from study.smoothing_records import SMOOTHING_FOLDER
from study.spec.hyperparameters import HYPERPARAMETERS
from study.spec.study_spec import AshaSpec, ConfirmSpec, ResourcesSpec, SearchSpec, StudySpec
from study.tracking.content import TRIAL_TAG_NAMES, cell_tags, study_tags
from study.tracking.names import PlannedCell

PACKAGES = ("bimp", "study", "reports", "benchmarks")
FILES = ("study.yaml",)
"""What looks like a module of ours."""


def modules_of(package: str) -> set[str]:
    """The modules of a package and of those within it, and the packages themselves."""
    paths = (ROOT / package).rglob("*.py")
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths}


def test_every_module_of_study_has_a_role() -> None:
    told = set(first_names(section(page("architecture"), "## Who does what in a study")))
    # A package is told as one; some of its modules beside it.
    top = {f"study.{path.stem}" for path in (ROOT / "study").iterdir() if path.suffix == ".py" or path.is_dir()}
    assert {name for name in top - told if "__" not in name} == set()
    assert told <= modules_of("study")


def test_rooms_of_reports_are_told_in_the_order_in_which_they_import_each_other() -> None:
    order = [
        name.partition(".")[2] for name in first_names(section(page("architecture"), "## Who does what in the tables"))
    ]
    folders = {path.name for path in (ROOT / "reports").iterdir() if (path / "__init__.py").exists()}
    assert sorted(order) == sorted(folders)
    for path in (ROOT / "reports").rglob("*.py"):
        room = path.relative_to(ROOT / "reports").parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if room in order and isinstance(node, ast.ImportFrom) and str(node.module).startswith("reports."):
                assert order.index(str(node.module).split(".")[1]) <= order.index(room), path


@pytest.mark.parametrize("file", ["README.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))])
def test_modules_and_files_that_a_page_names_are_there(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    known = set[str]().union(*map(modules_of, PACKAGES))
    for name in re.findall(rf"`((?:{'|'.join(PACKAGES)})\.[a-z_.]+)`", text):
        if name not in known and name not in FILES:
            module, _, attribute = name.rpartition(".")
            assert hasattr(importlib.import_module(module), attribute), name
    for name in re.findall(r"`?((?:tests|cluster|search_spaces)/[\w/.]+\.(?:py|sh|yaml))", text):
        assert (ROOT / name).exists(), name


def test_every_place_in_a_results_folder_is_told() -> None:
    tree = section(page("architecture"), "### Results folder")
    told = {name.partition("/")[0] for name in re.findall(r"(?<!\S)[a-z]+(?:/[\w/.]*|\.\w+)", tree)}
    folder = ResultsFolder(Path("results"))
    found = [getattr(folder, name) for name, kind in vars(ResultsFolder).items() if isinstance(kind, property)]
    assert {path.parts[1] for path in found if isinstance(path, Path)} <= told
    assert {STORE_FOLDER, SMOOTHING_FOLDER, PAGE_FILE, "mlflow.db", "mlartifacts", "figures"} <= told


def test_every_fault_that_is_told_can_be_caused_by_its_name() -> None:
    below = section(page("cluster"), "## Faults")
    told = [name for row in rows(below) if len(row) == 3 for name in re.findall(r"\(`(\w+)`\)", row[0])]
    caused = (*SCENARIOS, *LEASE_SCENARIOS, *RAY_SCENARIOS, *STOP_SCENARIOS, *MIRROR_SCENARIOS)
    assert sorted(told) == sorted(scenario.__name__ for scenario in caused)


def test_shipped_layouts_and_what_their_rows_select_by_are_told() -> None:
    below = section(page("tables"), "## Tables")
    assert sorted(first_names(below)) == sorted(shipped_layouts())
    _, _, selecting = below.partition("Rows and sides")
    assert set(Selector.model_fields) <= set(named(selecting))


def test_every_hyperparameter_is_told_with_the_sections_that_take_it() -> None:
    below = section(page("search_spaces"), "## Arms, space, fixed")
    keys = {named(row[0])[0]: row[3] for row in rows(below) if len(row) == 4 and named(row[0])}
    settings = {name for row in rows(below) if len(row) == 3 for name in named(row[0])}
    assert settings == set(SETTINGS) - set(keys)
    assert keys.keys() | settings == HYPERPARAMETERS.keys()
    for key, told in keys.items():
        where = ("arms", "space", "fixed") if told == "all" else tuple(told.split(", "))
        assert where == HYPERPARAMETERS[key].sections, key


@pytest.mark.parametrize(
    ("heading", "keys"),
    [
        ("## search", [*SearchSpec.model_fields, *(f"asha.{name}" for name in AshaSpec.model_fields)]),
        ("## confirm", list(ConfirmSpec.model_fields)),
        ("## resources", list(ResourcesSpec.model_fields)),
    ],
)
def test_every_key_of_a_section_is_told(heading: str, keys: list[str]) -> None:
    assert first_names(section(page("search_spaces"), heading)) == keys


def test_every_key_of_a_study_is_told() -> None:
    of_the_whole = first_names(section(page("search_spaces"), "## The study as a whole"))
    assert {*of_the_whole, "arms", "rows", "space", "fixed", "search", "confirm", "resources"} == set(
        StudySpec.model_fields
    )


def test_every_setting_has_its_values_under_both_presets() -> None:
    assert set(first_names(section(page("protocol"), "## Paper and released"))) == set(SETTINGS)


def test_the_protocol_of_every_dataset_is_told() -> None:
    told = {
        name: (int(batch), float(rate), int(patience), float(least), int(epochs))
        for names, _, batch, rate, patience, least, epochs in (
            row for row in rows(section(page("protocol"), "## Training (`bimp.engine`)")) if row[0] != "dataset"
        )
        for name in names.split(", ")
    }
    assert told == {
        name: (
            task.protocol.batch_size,
            task.protocol.learning_rate,
            task.protocol.lr_patience,
            task.protocol.min_lr,
            task.protocol.max_epochs,
        )
        for name, task in TASKS.items()
    }


def test_every_maker_of_a_dataset_is_told_the_default_first() -> None:
    told = {name: named(row[2]) for row in rows(section(page("data"), "## Which there are")) for name in named(row[0])}
    assert told == {name: [source.maker for source in sources] for name, sources in SOURCES.items()}
    option = next(
        each for each in typer.main.get_command(run_study.app).commands["prepare"].params if each.name == "maker"
    )
    assert {maker for makers in told.values() for maker in makers} <= set(re.findall(r"\w+", option.help))


def test_every_key_of_a_manifest_is_told() -> None:
    written = {"format", "fingerprint", *(entry.name for entry in fields(Manifest))}
    kept = {entry.name for entry in fields(DatasetStatistics)}
    assert set(first_names(section(page("data"), "## A prepared folder"))) == written | kept


def test_every_kind_of_finding_is_told_with_its_gravity() -> None:
    told = {}
    for row in rows(section(page("tables"), "## From a number to its evidence, and the check")):
        told.update(dict.fromkeys(named(row[0]), row[1]))
    kinds = {
        value.name: value.severity
        for module in pkgutil.iter_modules(reports.check.__path__)
        for value in vars(importlib.import_module(f"reports.check.{module.name}")).values()
        if isinstance(value, Kind)
    }
    assert told == kinds


def test_sections_of_the_page_are_told_in_their_order() -> None:
    of_all, of_a_study = (
        (ROOT / "reports" / "page" / "templates" / f"{name}.html.jinja").read_text(encoding="utf-8")
        for name in ("page", "study")
    )
    whole = of_all.replace('{% include "study.html.jinja" %}', of_a_study)
    head, *told = [row[0] for row in rows(section(page("tables"), "## One page")) if row[0] != "section"]
    assert head == "head"
    assert told == re.findall(r"<h2>(\w[^<{]*)</h2>", whole)


def test_what_pictures_have_in_python_is_told() -> None:
    told = section(page("tables"), "## Pictures").partition("In Python, ")[2]
    names = re.findall(r'`(\w+)(?:\("\w+"\))?`', told)
    held = [entry.name for entry in (*fields(Picture), *fields(Drawn))]
    assert sorted(names) == sorted([*held, Picture.content.__name__])


def test_every_event_of_the_log_is_told() -> None:
    told = set(named(section(page("cluster"), "## How it stands")))
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "study").glob("*.py"))
    events = {
        *re.findall(r'"event": "(\w+)"', source),
        *re.findall(r'(?:run_ended|_say\(|log_trial\(logger, |about\()"(\w+)"', source),
        *re.findall(r'"event", "(\w+)"', source),
    }
    assert {"node_lost", "waits", "came_apart", "worker", "run_began", "note"} <= events
    assert events - told == set()


def test_every_tag_of_a_run_in_mlflow_is_told() -> None:
    tags, _ = section(page("mlflow"), "## Names").split("- **Parameters**")
    of_trials, of_others = tags.split("A cell has")
    of_cells, of_studies = of_others.split("the study has")
    assert {name for name in TRIAL_TAG_NAMES if not name.startswith("mlflow.")} <= set(named(of_trials))
    given = dict.fromkeys((entry.name for entry in fields(PlannedCell)), "given")
    of_a_cell = cell_tags(PlannedCell(**given), "a study")
    assert set(named(of_cells)) == {name for name in of_a_cell if not name.startswith("mlflow.")}
    of_a_study = study_tags("a study", "given", 2)
    assert set(named(of_studies)) == {name for name in of_a_study if not name.startswith("mlflow.")}
