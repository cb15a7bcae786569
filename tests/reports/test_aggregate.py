"""The command: exit codes, its one line on an error, and what it does without."""

import subprocess
import sys
from pathlib import Path

import pytest
from made_studies import vanilla, worked_study, write_study

ROOT = Path(__file__).parents[2]
BLOCKED = ("torch", "ray", "mlflow", "torch_geometric")

WITHOUT = f"""
import runpy, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED!r}:
            raise ImportError(f"{{name}} must not be loaded")

sys.meta_path.insert(0, Blocker())
sys.argv = ["aggregate.py", *sys.argv[1:]]
sys.path.insert(0, {str(ROOT)!r})
runpy.run_path({str(ROOT / "aggregate.py")!r}, run_name="__main__")
"""


def aggregate(*arguments: object, code: str | None = None) -> "subprocess.CompletedProcess[str]":
    start = ["-c", code] if code else [str(ROOT / "aggregate.py")]
    command = [sys.executable, *start, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=120)


def test_tables_come_out_without_torch_ray_and_mlflow(tmp_path: Path) -> None:
    done = aggregate("tables", worked_study(tmp_path), code=WITHOUT)
    assert (done.returncode, done.stderr) == (0, "")
    for name in ("results.tex", "results_standalone.tex", "results.md", "results.csv", "results.html"):
        path = tmp_path / "tables" / name
        assert path.read_bytes() == (Path(__file__).parent / "expected" / name).read_bytes()
        assert f"{path}\n" in done.stdout


@pytest.mark.parametrize("name", BLOCKED)
def test_the_block_works(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.partition("sys.argv")[0] + f"import {name}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert f"{name} must not be loaded" in done.stderr


def test_out_names_the_folder(tmp_path: Path) -> None:
    results = write_study(tmp_path / "results", [vanilla("zinc", "gcn")], [])
    done = aggregate("tables", results, "--out", tmp_path / "paper" / "tables")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "paper" / "tables" / "results.tex").is_file()
    assert not (results / "tables").exists()


def error_of(*arguments: object) -> str:
    """The one line on stderr of a command that must end with exit code 2 and print nothing else."""
    done = aggregate("tables", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    return line


def test_errors_are_one_line(tmp_path: Path) -> None:
    assert error_of(tmp_path / "missing") == (
        f"error: {tmp_path / 'missing'}: no such folder; expected the results folder of a study"
    )
    assert error_of(tmp_path).startswith(f"error: {tmp_path / 'plan.json'}: not found")
    results = write_study(tmp_path, [vanilla("zinc", "gcn")], [])
    cut = results / "records" / "0a.parquet"
    cut.write_bytes(b"PAR1 not quite")
    assert error_of(results).startswith(f"error: {cut}: not a readable Parquet file")
    cut.unlink()
    (tmp_path / "file").write_text("")
    assert "found a file, expected a folder" in error_of(results, "--out", tmp_path / "file")
