"""The command: exit codes, its one line on an error, and what it does without."""

import subprocess
import sys
from pathlib import Path

import pytest
from aggregate_command import BLOCKED, ROOT, WITHOUT, aggregate, aggregate_process, error_of
from made_studies import vanilla, worked_study, write_study


def test_tables_come_out_without_torch_ray_and_mlflow(tmp_path: Path) -> None:
    done = aggregate_process("tables", worked_study(tmp_path), code=WITHOUT)
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
    assert (done.exit_code, done.stderr) == (0, "")
    assert (tmp_path / "paper" / "tables" / "results.tex").is_file()
    assert not (results / "tables").exists()


def test_errors_are_one_line(tmp_path: Path) -> None:
    assert error_of(tmp_path / "missing") == (
        f"error: {tmp_path / 'missing'}: no study here (there is no such folder); "
        "give a study's results folder, or its URL"
    )
    assert error_of(tmp_path).startswith(f"error: {tmp_path}: no study here (plan.json is missing)")
    results = write_study(tmp_path, [vanilla("zinc", "gcn")], [])
    cut = results / "records" / "0a.parquet"
    cut.write_bytes(b"PAR1 not quite")
    assert error_of(results).startswith(f"error: {cut}: not a readable Parquet file")
    cut.unlink()
    (tmp_path / "file").write_text("")
    wrong = ("tables", results, "--out", tmp_path / "file")
    assert "found a file, expected a folder" in error_of(*wrong[1:])
    as_process = aggregate_process(*wrong)
    assert (as_process.returncode, as_process.stdout, as_process.stderr) == (2, "", aggregate(*wrong).stderr)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("tables", ""), "RESULTS: found nothing, expected a folder or its URL"),
        (("tables", "--published", "--out", ""), "--out: found nothing"),
        (("tables", "--published", "--out", "s3:/bucket/tables"), "--out: s3:/bucket/tables: found one slash"),
        (("tables", "--statistics", ""), "--statistics: found nothing"),
        (("tables", "--published", "--out", "/proc/x"), "/proc/x: No such file or directory; name another place"),
        (("page", "http://host/x"), "RESULTS: http://host/x: found scheme http"),
        (("fidelity", ""), "FOLDER: found nothing"),
    ],
)
def test_a_place_that_cannot_be_meant_is_one_line(words: tuple[str, ...], told: str, tmp_path: Path) -> None:
    done = aggregate(*words)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {told}")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_has_enough_is_no_error(tmp_path: Path) -> None:
    study, script = worked_study(tmp_path), ROOT / "aggregate.py"
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} {script} tables {study} | head -c 1 >/dev/null"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
