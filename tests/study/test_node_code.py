"""What is sent to the nodes of a cluster: the project and the user's own layers, and nothing beside."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from study import node_code
from study.cluster import prepare_environment
from study.node_code import PROJECT, SENT_SETTINGS, CodeError, code_of, shipped_code

Own = Callable[[dict[str, str]], Path]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Own]:
    """Writes files of a user's own on the search path, and imports ``my_lab``."""

    def write(files: dict[str, str]) -> Path:
        for name, content in files.items():
            path = tmp_path / "own" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        monkeypatch.syspath_prepend(str(tmp_path / "own"))
        importlib.invalidate_caches()
        for module in [name for name in sys.modules if name.partition(".")[0] == "my_lab"]:
            monkeypatch.delitem(sys.modules, module)
        importlib.import_module("my_lab")
        return tmp_path / "own"

    yield write
    for module in [name for name in sys.modules if name.partition(".")[0] == "my_lab"]:
        del sys.modules[module]


def sent(*backbones: str, environment: dict[str, str] | None = None) -> set[str]:
    with shipped_code(backbones, {}, environment or {}) as given:
        folder = Path(given["working_dir"])
        return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def job(**runtime_env: object) -> dict[str, str]:
    return {"RAY_JOB_CONFIG_JSON_ENV_VAR": json.dumps({"runtime_env": runtime_env, "metadata": {}})}


def test_every_module_of_the_packages_is_sent_and_no_cache_or_record() -> None:
    found = sent("gcn", "gat")
    modules = {
        str(path.relative_to(PROJECT))
        for package in ("bimp", "study", "reports")
        for path in (PROJECT / package).rglob("*.py")
        if "reproduction" not in path.parts
    }
    assert {name for name in found if name.endswith(".py")} == modules
    assert "bimp/data/prepared.py" in found
    assert not [name for name in found if "__pycache__" in name or name.endswith((".pyc", ".parquet"))]


def test_what_is_sent_is_enough_to_load_a_worker(tmp_path: Path) -> None:
    with shipped_code(["gcn"], {}, {}) as given:
        # -P and another working folder: nothing of this checkout is on the path.
        loaded = subprocess.run(
            [sys.executable, "-P", "-c", "import study.worker; print(study.worker.__file__)"],
            env={"PYTHONPATH": given["working_dir"], "PATH": ""},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert loaded.stdout.strip() == str(Path(given["working_dir"]) / "study" / "worker.py"), loaded.stderr


def test_a_layer_in_a_file_is_sent_alone(own: Own) -> None:
    own({"my_lab.py": "", "secret.txt": "not for the nodes"})
    found = sent("gcn", "my_lab:Layer")
    assert "my_lab.py" in found
    assert not [name for name in found if "secret" in name]


def test_a_layer_in_a_package_is_sent_with_it_but_not_with_data_results_and_what_is_hidden(own: Own) -> None:
    own(
        {
            "my_lab/__init__.py": "",
            "my_lab/deep/layers.py": "",
            "my_lab/basis.json": "{}",
            "my_lab/data/__init__.py": "",
            "my_lab/deep/data/large.bin": "",
            "my_lab/results/record.parquet": "",
            "my_lab/.git/HEAD": "",
            "my_lab/.venv/bin/python": "",
        }
    )
    found = {name for name in sent("my_lab.deep.layers:Layer") if name.startswith("my_lab")}
    # A folder called data that is a package is code.
    assert found == {"my_lab/__init__.py", "my_lab/deep/layers.py", "my_lab/basis.json", "my_lab/data/__init__.py"}


def test_a_layer_from_an_installed_library_is_left_to_the_nodes() -> None:
    importlib.import_module("torch_geometric.nn")
    assert code_of(["torch_geometric.nn:GCNConv"]) == code_of([])


def test_a_package_too_large_to_be_sent_is_named(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = own({"my_lab/__init__.py": "", "my_lab/table.csv": "0" * (3 * 2**20)})
    monkeypatch.setattr(node_code, "LARGEST_BYTES", 3 * 2**20)
    with pytest.raises(CodeError, match=rf"^{folder}/my_lab: 3.0 of 4.\d MiB that .* than 3 in all; move data out"):
        sent("my_lab:Layer")


def test_within_a_job_that_ships_its_working_folder_nothing_is_sent_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)
    with shipped_code(["gcn"], {}, job(working_dir="gcs://_ray_pkg_0.zip")) as given:
        assert given == {}


def test_within_a_job_whose_folder_lacks_the_project_the_project_is_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    packages = [str(PROJECT / name) for name in ("bimp", "study", "reports")]
    with shipped_code(["gcn"], {}, job(working_dir="gcs://_ray_pkg_0.zip")) as given:
        assert given == {"py_modules": packages}
    # Ray refuses a field that the job has too.
    with shipped_code(["gcn"], {}, job(working_dir="gcs://a.zip", py_modules=["gcs://b.zip"])) as given:
        assert given == {}


def test_variables_of_the_workers_go_along_unless_the_job_has_its_own() -> None:
    own = {"MALLOC_ARENA_MAX": "1", "MALLOC_TRIM_THRESHOLD_": "2", "HOME": "/root"}
    threads = {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    jobs = job(env_vars={"MALLOC_ARENA_MAX": "4", "OMP_NUM_THREADS": "1"})
    with shipped_code(["gcn"], threads, {**own, **jobs}) as given:
        assert given["env_vars"] == {"MALLOC_TRIM_THRESHOLD_": "2", "MKL_NUM_THREADS": "2"}
        assert "working_dir" in given
    with shipped_code(["gcn"], threads, own) as given:
        assert given["env_vars"] == {"MALLOC_ARENA_MAX": "1", "MALLOC_TRIM_THRESHOLD_": "2", **threads}


def test_all_that_the_c_library_of_a_worker_is_to_read_goes_along(monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, str] = {}
    monkeypatch.setattr(os, "environ", settings)
    prepare_environment()
    assert {name for name in settings if name.startswith("MALLOC_")} == set(SENT_SETTINGS)
