"""The direction of imports: bimp <- study <- run_study.py, and study.records <- reports <- aggregate.py."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FORBIDDEN = {
    "bimp": {"study", "reports", "ray", "mlflow", "optuna", "pandas", "pyarrow"},
    "reports": {"bimp", "torch", "torch_geometric", "ray", "mlflow"},
    "study": {"aggregate", "run_study"},
}


def imported(path: Path) -> Iterator[str]:
    """Every module that ``path`` imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield str(node.module)


@pytest.mark.parametrize("package", FORBIDDEN)
def test_a_package_imports_nothing_that_stands_above_it(package: str) -> None:
    wrong = {
        (str(path.relative_to(ROOT)), name)
        for path in (ROOT / package).rglob("*.py")
        for name in imported(path)
        if name.split(".")[0] in FORBIDDEN[package]
    }
    assert not wrong


@pytest.mark.parametrize("package", ["bimp", "reports"])
def test_the_rooms_of_a_package_import_each_other_in_one_direction(package: str) -> None:
    """Rooms are its folders and the modules beside them; imports for types count too."""
    rooms: dict[str, set[str]] = {}
    for path in (ROOT / package).rglob("*.py"):
        room = path.relative_to(ROOT / package).with_suffix("").parts[0]
        imports = (name.split(".") for name in imported(path))
        rooms.setdefault(room, set()).update(
            parts[1] for parts in imports if parts[0] == package and len(parts) > 1 and parts[1] != room
        )
    rooms.pop("__init__", None)
    TopologicalSorter(rooms).prepare()  # raises on a circle


def test_no_two_modules_need_each_other() -> None:
    """Not for a type either: what two of them share stands below both."""
    modules = dict(map(named, (path for package in FORBIDDEN for path in (ROOT / package).rglob("*.py"))))
    needs = {name: set(needed(path, modules)) - {name} for name, path in modules.items()}
    while free := {
        name for name, wanted in needs.items() if not wanted or not any(name in of for of in needs.values())
    }:
        needs = {name: wanted - free for name, wanted in needs.items() if name not in free}
    # Whoever is left stands in a circle, or between two.
    assert needs == {}


def named(path: Path) -> tuple[str, Path]:
    """The name under which a module is imported, and its file."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"), path


def needed(path: Path, modules: dict[str, Path]) -> Iterator[str]:
    """The modules among ``modules`` that ``path`` imports, those that are imported by name from their package too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from names & modules.keys()
            if names - modules.keys():
                yield str(node.module)


def test_reports_knows_of_study_only_the_schemas_of_its_files() -> None:
    known = {
        name
        for path in [*(ROOT / "reports").rglob("*.py"), ROOT / "aggregate.py"]
        for name in imported(path)
        if name.split(".")[0] == "study"
    }
    places = {"study.found_study", "study.given_place", "study.location", "study.store_access"}
    words = {"study.counted", "study.one_line"}
    assert known == places | words | {"study.records", "study.smoothing_records"}


def test_only_the_ends_of_a_study_know_reports() -> None:
    users = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "study").rglob("*.py")
        if any(name.split(".")[0] == "reports" for name in imported(path))
    }
    assert users == {"study/commands/launching.py", "study/driver.py", "study/faults.py", "study/outcome.py"}


def test_importing_the_model_loads_no_study_library() -> None:
    code = "import sys, bimp.engine; print(sorted({'ray', 'mlflow', 'optuna', 'sklearn', 'pandas'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
