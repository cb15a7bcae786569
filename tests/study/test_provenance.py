from __future__ import annotations

import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import torch

from study.provenance import CODE_FOLDER, GitState, device_name, git_state, library_versions

UNKNOWN = GitState(commit=None, dirty=None)


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=A Person", "-c", "user.email=person@example.org"]
    answer = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return answer.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    (folder / "study").mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "study" / "module.py").write_text("one = 1\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def test_a_clean_checkout_has_its_commit(repository: Path) -> None:
    assert git_state(repository / "study") == GitState(commit=git(repository, "rev-parse", "HEAD"), dirty=False)


def test_a_changed_file_makes_it_dirty_and_an_untracked_one_does_not(repository: Path) -> None:
    (repository / "results.txt").write_text("new")
    assert git_state(repository / "study").dirty is False
    (repository / "study" / "module.py").write_text("one = 2\n")
    assert git_state(repository / "study").dirty is True


def test_the_repository_is_that_of_the_folder_and_not_of_the_working_folder(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert git_state(elsewhere) == UNKNOWN


def test_code_installed_below_a_foreign_checkout_is_not_that_checkout(repository: Path) -> None:
    (repository / ".gitignore").write_text("site-packages\n")
    installed = repository / "site-packages" / "study"
    installed.mkdir(parents=True)
    (installed / "module.py").write_text("one = 1\n")
    assert git_state(installed) == UNKNOWN


def test_a_repository_without_a_commit_is_unknown(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    assert git_state(tmp_path) == UNKNOWN


def test_no_git_at_all_is_unknown(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository / "no programs here"))
    assert git_state(repository) == UNKNOWN


def test_a_git_that_hangs_is_unknown(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "git").write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    assert git_state(repository, timeout_s=0.05) == UNKNOWN


def test_a_folder_that_is_not_there_is_unknown(tmp_path: Path) -> None:
    assert git_state(tmp_path / "missing") == UNKNOWN


def test_the_default_folder_is_that_of_the_code() -> None:
    assert (CODE_FOLDER / "provenance.py").is_file()


def test_versions_are_those_of_the_installed_distributions() -> None:
    versions = library_versions()
    assert versions["python"] == platform.python_version()
    for name in ("torch", "torch-geometric", "ray", "optuna", "mlflow", "pyarrow", "numpy"):
        assert versions[name] == metadata.version(name)


def test_a_library_that_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("study.provenance.LIBRARIES", ("numpy", "no-such-distribution-of-ours"))
    assert set(library_versions()) == {"python", "numpy"}


def test_versions_import_none_of_the_heavy_libraries() -> None:
    program = (
        "import sys; from study.provenance import library_versions; library_versions(); "
        "print([name for name in ('ray', 'optuna', 'mlflow', 'pyarrow', 'torch_geometric') if name in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], cwd=CODE_FOLDER.parent, capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"


def test_the_processor_is_called_by_its_model(tmp_path: Path) -> None:
    information = tmp_path / "cpuinfo"
    information.write_text("processor\t: 0\nmodel name\t: Example Chip: 9000 @ 2GHz\n\nprocessor\t: 1\n")
    assert device_name(torch.device("cpu"), information) == "Example Chip: 9000 @ 2GHz"


@pytest.mark.parametrize("content", [None, "processor : 0\nmodel name :\n"])
def test_without_a_model_the_platform_is_asked(
    tmp_path: Path, content: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    information = tmp_path / "cpuinfo"
    if content is not None:
        information.write_text(content)
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert device_name(torch.device("cpu"), information) == "riscv64"


def test_a_gpu_is_called_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"Accelerator {device.index}")
    assert device_name(torch.device("cuda", 1)) == "Accelerator 1"
