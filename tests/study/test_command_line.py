"""The command line as ``main`` runs it: wrong input gives one line and exit code 2, and no traceback."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from made_trials import assignment, record

import run_study
from bimp.data import prepare
from study import faults
from study.lease import Lease
from study.plan import plan, plan_document, plan_json
from study.records import write_record
from study.results import ResultsFolder
from study.spec import load_study

TINY = Path(__file__).parents[2] / "search_spaces" / "tiny.yaml"


@dataclass(frozen=True)
class Told:
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """A command may set what its own process alone would see."""
    environment, timeout = dict(os.environ), socket.getdefaulttimeout()
    yield
    socket.setdefaulttimeout(timeout)
    os.environ.clear()
    os.environ.update(environment)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    prepare("digits", root)
    return root


class Command:
    """``python run_study.py ARGUMENTS``, in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *arguments: str | Path) -> Told:
        self._monkeypatch.setattr(sys, "argv", ["run_study.py", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            run_study.main()
        captured = self._capsys.readouterr()
        return Told(int(ended.value.code or 0), captured.out, captured.err)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


def assert_refused(told: Told, *words: str) -> None:
    assert told.code == 2, told
    assert told.err.startswith("error: ")
    assert told.err.count("\n") == 1, told.err
    for word in words:
        assert word in told.err
    assert "Traceback" not in told.out


@pytest.mark.parametrize("verb", [["plan"], ["plan", "--json"], ["run"]])
class TestStudyFile:
    def test_missing(self, command: Command, verb: list[str], tmp_path: Path) -> None:
        assert_refused(command(*verb, tmp_path / "none.yaml"), f"{tmp_path / 'none.yaml'}: ", "No such file")

    def test_a_folder(self, command: Command, verb: list[str], tmp_path: Path) -> None:
        assert_refused(command(*verb, tmp_path), f"{tmp_path}: ", "Is a directory")

    @pytest.mark.parametrize(
        ("content", "told"),
        [
            (b"", "expected a mapping"),
            (b"\xff\xfe\x00", "not UTF-8"),
            (b"name: [", "expected valid YAML"),
            (b"name: a\nnam: b\n", ":2: nam: found an unknown key"),
            (b"name: a\nname: b\n", "a second time"),
            (TINY.read_bytes().replace(b"budget: 5000", b"budget: 5"), "budget"),
            (TINY.read_bytes().replace(b"[2, 8]", b"[8, 2]"), "space.num_clusters"),
            (TINY.read_bytes().replace(b"backbone: gcn", b"backbone: gnn"), "arms.backbone"),
        ],
    )
    def test_broken(self, command: Command, verb: list[str], tmp_path: Path, content: bytes, told: str) -> None:
        file = tmp_path / "study.yaml"
        file.write_bytes(content)
        refused = command(*verb, file)
        assert_refused(refused, str(file), told)
        assert refused.out == "", "a broken file has no plan"


def test_plan_as_json_is_the_list_of_cells(command: Command) -> None:
    told = command("plan", TINY, "--json")
    assert (told.code, told.err) == (0, "")
    cells = json.loads(told.out)
    # Rungs at 1 and 2 of 2 epochs, one in two goes on: 1.5 epochs a trial.
    assert [cell.pop("effort")["search_epochs"] for cell in cells] == [[3, 4.5, 6]] * 2
    assert cells == json.loads(json.dumps(plan_json(plan(load_study(TINY)))))


def test_plan_measures_on_prepared_data_alone(command: Command, data: Path, tmp_path: Path) -> None:
    assert_refused(command("plan", TINY, "--measure", "--data", tmp_path), str(tmp_path), "prepare digits")
    told = command("plan", TINY, "--measure", "--data", data, "--slots", "3")
    assert told.code == 0, told
    assert "with trials 3 side by side (--slots)" in told.out
    assert told.err.count("measuring cell") == 2
    assert list(tmp_path.iterdir()) == []


def test_plan_spends_nothing(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = command("plan", TINY)
    assert told.code == 0
    assert all(cell.id in told.out for cell in plan(load_study(TINY)).cells)
    assert list(tmp_path.iterdir()) == []


class TestResultsFolder:
    def test_of_another_study(self, command: Command, tmp_path: Path, data: Path) -> None:
        results, other = tmp_path / "results", tmp_path / "other.yaml"
        results.mkdir()
        (results / "study.yaml").write_bytes(TINY.read_bytes())
        other.write_text(TINY.read_text().replace("name: tiny", "name: other"))
        refused = command("run", other, "--results", results, "--data", data)
        assert_refused(refused, f"{results}: ", "another study", "name: tiny -> other")

    def test_whose_study_cannot_be_read(self, command: Command, tmp_path: Path, data: Path) -> None:
        (tmp_path / "study.yaml").write_text("x")
        assert_refused(command("run", TINY, "--results", tmp_path, "--data", data), f"{tmp_path / 'study.yaml'}:1: ")

    def test_with_a_record_that_cannot_be_read(self, command: Command, tmp_path: Path, data: Path) -> None:
        (tmp_path / "records").mkdir()
        path = tmp_path / "records" / "0123.parquet"
        path.write_bytes(b"PAR1")
        assert_refused(command("run", TINY, "--results", tmp_path, "--data", data), f"{path}: not a readable Parquet")

    def test_with_a_journal_that_cannot_be_read(self, command: Command, tmp_path: Path, data: Path) -> None:
        path = tmp_path / "journal" / "000007.jsonl"
        path.parent.mkdir()
        path.write_text("x\n")
        refused = command("run", TINY, "--results", tmp_path, "--data", data)
        assert_refused(refused, f"{path}:1: not readable as JSON", "start in another folder")

    @pytest.mark.parametrize("option", ["--results", "--data"])
    def test_that_is_a_file(self, command: Command, tmp_path: Path, option: str) -> None:
        (tmp_path / "taken").write_text("")
        places = {"--results": tmp_path / "results", "--data": tmp_path / "data", option: tmp_path / "taken"}
        refused = command("run", TINY, *(part for pair in places.items() for part in map(str, pair)))
        assert_refused(refused, f"{tmp_path / 'taken'}: no folder can be made there", f"name another with {option}")

    @pytest.mark.parametrize("name", ["records", "live", "lease", "journal", "tables"])
    def test_with_a_file_where_a_folder_should_be(
        self, command: Command, tmp_path: Path, data: Path, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("study.study_ray.start_ray", lambda *_: pytest.fail("it is refused before"))
        monkeypatch.setattr("study.coordinator.StudyCoordinator.done", True)
        (tmp_path / name).write_bytes(b"\0")
        refused = command("run", TINY, "--results", tmp_path, "--data", data)
        assert_refused(refused, f"{tmp_path / name}: found a file, expected a folder; move it away")

    def test_with_altered_data(self, command: Command, tmp_path: Path) -> None:
        prepare("digits", tmp_path / "data")
        path = tmp_path / "data" / "digits" / "y.bin"
        path.write_bytes(bytes(path.stat().st_size))
        refused = command("run", TINY, "--results", tmp_path / "results", "--data", tmp_path / "data")
        assert_refused(refused, str(path), f"prepare digits --data {tmp_path / 'data'} --maker library --force")


class TestStatus:
    def test_of_an_empty_folder(self, command: Command, tmp_path: Path) -> None:
        assert_refused(command("status", tmp_path), f"{tmp_path}: no study here")

    def test_of_a_folder_that_is_not_there(self, command: Command, tmp_path: Path) -> None:
        assert_refused(command("status", tmp_path / "none"), f"{tmp_path / 'none'}: no study here")

    def test_of_a_broken_plan(self, command: Command, tmp_path: Path) -> None:
        (tmp_path / "plan.json").write_text("{")
        assert_refused(command("status", tmp_path), f"{tmp_path / 'plan.json'}: not the plan of a study")

    @pytest.mark.parametrize("content", [b"\xff\x00", b"[" * 100_000, b"[]", b"null", b'{"cells": [1]}'])
    @pytest.mark.parametrize("verb", ["status", "rebuild-mlflow"])
    def test_of_a_plan_that_is_something_else(
        self, command: Command, tmp_path: Path, verb: str, content: bytes
    ) -> None:
        (tmp_path / "plan.json").write_bytes(content)
        assert_refused(command(verb, tmp_path), f"{tmp_path / 'plan.json'}: not ", "plan")

    def test_names_every_trial_that_failed(self, command: Command, tmp_path: Path) -> None:
        folder = ResultsFolder(tmp_path)
        folder.create()
        folder.plan_file.write_text(json.dumps(plan_document(plan(load_study(TINY)))))
        failed = record(
            assignment(tmp_path, cell="digits-gcn-boosting-L2-5k"), 1, status="failed", reason="OSError: [Errno 5] gone"
        )
        write_record(failed, folder.record(failed.key))
        told = command("status", tmp_path)
        assert (told.code, told.err) == (0, "")
        assert "tiny: 1/10 trials" in told.out
        line = f"{failed.key} digits-gcn-boosting-L2-5k search seed 41: failed, OSError: [Errno 5] gone"
        assert line in told.out.splitlines()

    def test_names_twenty_and_with_all_every_one(self, command: Command, tmp_path: Path) -> None:
        folder = ResultsFolder(tmp_path)
        folder.create()
        folder.plan_file.write_text(json.dumps(plan_document(plan(load_study(TINY)))))
        for number in range(23):
            given = assignment(tmp_path, key=f"k{number}", cell="digits-gcn-none-L2-5k")
            write_record(
                record(given, 1, status="diverged", reason=f"epoch {number}: loss nan"), folder.record(given.key)
            )
        told = command("status", tmp_path)
        assert told.out.count(": diverged, epoch ") == 20
        assert "\nand 3 more, which --all names\n" in told.out
        assert "\n23 diverged: epoch ...: loss nan\n" in told.out
        assert command("status", tmp_path, "--all").out.count(": diverged, epoch ") == 23


class TestCompact:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> ResultsFolder:
        folder = ResultsFolder(tmp_path / "results")
        folder.create()
        for number in range(3):
            ended = record(assignment(folder.root, number=number, key=f"k{number}"), 1, status="finished")
            write_record(ended, folder.record(ended.key))
        return folder

    def test_says_what_it_did(self, command: Command, folder: ResultsFolder) -> None:
        path = folder.records / "compacted.parquet"
        told = command("compact", folder.root)
        assert (told.code, told.err) == (0, "")
        assert told.out == f"{path}: 3 records, 3 of them from files of their own\n"
        assert command("compact", folder.root).out == f"{path}: 3 records; nothing to add\n"

    def test_a_folder_without_records(self, command: Command, tmp_path: Path) -> None:
        assert_refused(command("compact", tmp_path), f"{tmp_path}: no study here (records is missing)")
        assert list(tmp_path.iterdir()) == [], "a folder that is none gets no lock either"

    def test_a_record_that_is_cut(self, command: Command, folder: ResultsFolder) -> None:
        folder.record("k1").write_bytes(b"PAR1")
        assert_refused(command("compact", folder.root), str(folder.record("k1")), "not a readable Parquet file")

    def test_a_folder_in_which_a_run_works(self, command: Command, folder: ResultsFolder) -> None:
        with Lease(folder):
            refused = command("compact", folder.root)
        assert_refused(refused, f"{folder.root}: another run works in this folder (process {os.getpid()} of ")
        assert "; wait for it, then compact again" in refused.err


class TestPrepare:
    def test_an_unknown_dataset(self, command: Command, tmp_path: Path) -> None:
        refused = command("prepare", "mnist", "--data", tmp_path)
        assert_refused(refused, "dataset: found 'mnist', expected one of digits, zinc, smnist")

    def test_where_a_file_is(self, command: Command, tmp_path: Path) -> None:
        (tmp_path / "taken").write_text("")
        assert_refused(command("prepare", "digits", "--data", tmp_path / "taken"), "name another with --data")

    def test_raw_files_that_are_not_there(self, command: Command, tmp_path: Path) -> None:
        refused = command("prepare", "zinc", "--from", tmp_path / "none", "--data", tmp_path)
        assert_refused(refused, f"{tmp_path / 'none' / 'train.pickle'}: found no file")

    def test_pickles_that_nobody_vouches_for(self, command: Command, tmp_path: Path) -> None:
        raw = tmp_path / "raw"
        raw.mkdir()
        for split in ("train", "val", "test"):
            (raw / f"{split}.pickle").write_bytes(b"cos\nsystem\n(S'touch /nowhere/at/all'\ntR.")
            (raw / f"{split}.index").write_text("0")
        refused = command("prepare", "zinc", "--from", raw, "--data", tmp_path / "data")
        assert_refused(refused, str(raw / "train.pickle"), "--trust")
        assert not (tmp_path / "data" / "zinc").exists()

    def test_says_what_was_prepared(self, command: Command, data: Path) -> None:
        told = command("prepare", "digits", "--data", data)
        assert (told.code, told.err) == (0, "")
        assert told.out.startswith("digits: 1,797 graphs, ")


def test_a_full_disk_is_told_in_one_line(
    command: Command, tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "records/k.parquet")

    monkeypatch.setattr("study.study_ray.start_ray", full)
    refused = command("run", TINY, "--results", tmp_path / "results", "--data", data)
    assert_refused(refused, "No space left on device: 'records/k.parquet'", "the same command goes on")


def test_an_interruption_is_told_without_calling_it_an_error(
    command: Command, tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("study.study_ray.start_ray", interrupted)
    results = tmp_path / "results"
    told = command("run", TINY, "--results", results, "--data", data)
    assert told.code == 130
    assert told.err == f"stopped; nothing that ended is lost; the same command goes on in {results}\n"


def test_a_fault_of_the_code_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, data: Path) -> None:
    def faulty(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file or directory", "a file of ours")

    monkeypatch.setattr("study.study_ray.start_ray", faulty)
    monkeypatch.setattr(
        sys, "argv", ["run_study.py", "run", str(TINY), "--results", str(tmp_path), "--data", str(data)]
    )
    with pytest.raises(FileNotFoundError):
        run_study.main()
    assert faults.in_one_line(ZeroDivisionError()) is None


def test_best_of_a_folder_without_a_study_or_with_no_such_cell(command: Command, tmp_path: Path) -> None:
    assert_refused(command("best", tmp_path), f"{tmp_path}: no study here")
    (tmp_path / "study.yaml").write_bytes(TINY.read_bytes())
    assert_refused(command("best", tmp_path, "tiny"), "no cell tiny; it has digits-gcn-none-L2-5k, digits-gcn-boosting")
    assert_refused(command("best", tmp_path), "no search trial of any cell has gone all the way yet")


@pytest.mark.parametrize(
    "words",
    [
        ("status", ""),
        ("best", ""),
        ("compact", ""),
        ("smoothing", ""),
        ("rebuild-mlflow", ""),
        ("run", ""),
        ("run", TINY, "--results", ""),
        ("run", TINY, "--data", ""),
        ("run", TINY, "--mlflow", ""),
        ("run", TINY, "--address", ""),
        ("plan", TINY, "--from", ""),
        ("best", ".", "--out", ""),
        ("evaluate", "", "x"),
        ("evaluate", "x", ""),
        ("prepare", "digits", "--data", ""),
        ("prepare", "zinc", "--from", ""),
    ],
)
def test_nothing_is_not_the_working_folder(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused(command(*words), ": found nothing, expected ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", ["status", "best", "compact", "smoothing", "rebuild-mlflow"])
def test_where_no_study_is_every_command_says_the_same(command: Command, tmp_path: Path, verb: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    remedy = "); give a study's results folder, or its URL"
    assert_refused(command(verb, tmp_path / "none"), f"{tmp_path / 'none'}: no study here (there is no such", remedy)
    assert_refused(command(verb, tmp_path / "file"), f"{tmp_path / 'file'}: no study here (it is a file", remedy)
    assert_refused(command(verb, tmp_path / "folder"), f"{tmp_path / 'folder'}: no study here (", "is missing", remedy)
    assert list((tmp_path / "folder").iterdir()) == []


class TestBestThatIsWritten:
    @pytest.fixture
    def study(self, tmp_path: Path) -> Path:
        """A study of one cell, in which nothing is searched."""
        folder = tmp_path / "study"
        folder.mkdir()
        (folder / "study.yaml").write_text((TINY.parent / "paper_zinc.yaml").read_text())
        return folder

    def test_to_an_object_store(self, command: Command, study: Path, bucket_url: str) -> None:
        cell = plan(load_study(study / "study.yaml")).cells[0].id
        told = command("best", study, cell, "--out", f"{bucket_url}/best.yaml")
        assert (told.code, told.out, told.err) == (0, f"{bucket_url}/best.yaml\n", "")
        assert command("plan", f"{bucket_url}/best.yaml").code == 0
        there = command("best", study, cell, "--out", f"{bucket_url}/best.yaml")
        assert_refused(there, f"{bucket_url}/best.yaml: is there already")
        missing = command("best", study, cell, "--out", "s3://no-such-bucket/best")
        assert_refused(missing, "s3://no-such-bucket/best: there is no such bucket", "name another with --out")

    @pytest.mark.parametrize(
        ("out", "told"),
        [
            ("/proc/b.yaml", "/proc/b.yaml: cannot be written (No such file or directory); name another with --out"),
            ("/dev/null", "/dev/null: no folder can be made there (File exists); name another with --out"),
            ("/dev/null/b.yaml", "/dev/null: no folder can be made there"),
            ("s3:/bucket/b.yaml", "--out: s3:/bucket/b.yaml: found one slash, expected s3://bucket/b.yaml"),
        ],
    )
    def test_where_none_can_be(self, command: Command, study: Path, out: str, told: str) -> None:
        cell = plan(load_study(study / "study.yaml")).cells[0].id
        assert_refused(command("best", study, cell, "--out", out), told)


def test_best_takes_the_words_that_explain_takes(command: Command, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_bytes((TINY.parent / "paper_zinc.yaml").read_bytes())
    planned = plan(load_study(tmp_path / "study.yaml"))
    (tmp_path / "plan.json").write_text(json.dumps(plan_document(planned)))
    (tmp_path / "records").mkdir()
    deep = next(cell.id for cell in planned.cells if cell.id.startswith("zinc-gcn-boosting-L16"))
    by_words, by_id = command("best", tmp_path, "bi-GCN L16"), command("best", tmp_path, deep)
    assert (by_words.code, by_words.out) == (0, by_id.out)
    assert_refused(command("best", tmp_path, "bi-GCN"), "'bi-GCN': found 2 such cells; add a word to mean one: ")
    assert_refused(command("best", tmp_path, "bi-GTA L4"), "'bi-GTA L4': found no such cell; nearest: ")


def test_best_goes_to_the_screen_as_a_study_file(command: Command, tmp_path: Path) -> None:
    text = (TINY.parent / "paper_zinc.yaml").read_text()
    (tmp_path / "study.yaml").write_text(text)
    names = [cell.id for cell in plan(load_study(tmp_path / "study.yaml")).cells]
    told = command("best", tmp_path, names[0])
    assert (told.code, told.err) == (0, "")
    assert "# no trial of it has ended yet\n" in told.out
    (tmp_path / "best.yaml").write_text(told.out)
    assert [cell.dataset for cell in plan(load_study(tmp_path / "best.yaml")).cells] == ["zinc"]
