from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from made_trials import assignment, record
from mlflow import MlflowClient
from rich.console import Console

from bimp.data import prepare
from study import study_ray
from study.assignment import TrialAssignment
from study.cell_run import PlannedTrial
from study.claim import claim
from study.cluster_address import ClusterAddressError
from study.coordinator import StudyCoordinator
from study.driver import StudyEnd, run_study
from study.faults import FolderError, StudyInterruptedError
from study.lease import Lease
from study.outcome import failures_line, print_outcome
from study.plan import plan, plan_document
from study.records import write_record
from study.results import ResultsFolder, ResultsFolderError
from study.run_options import RunOptions
from study.spec import load_study
from study.tracking import MirrorError, MlflowMirror, default_tracking_uri
from study.whole_files import stamp

STUDY = """\
name: made
caption: A caption.
arms: {dataset: digits, backbone: gcn, placement: [none, boosting], hidden_dim: 6, layers: 2}
space: {learning_rate: {log_uniform: [1e-3, 1e-2]}}
fixed: {max_epochs: 2, num_clusters: 3, sigma_m: 0.5}
search: {trials: 4}
confirm: {seeds: [41, 95]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> ResultsFolder:
    return ResultsFolder(tmp_path / "results")


def study_file(tmp_path: Path, **changes: str) -> Path:
    text = STUDY
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    file = tmp_path / f"study{len(list(tmp_path.glob('*.yaml')))}.yaml"
    file.write_text(text)
    return file


def claimed(folder: ResultsFolder, file: Path) -> None:
    spec = load_study(file)
    claim(folder, file, file.read_text(), spec, plan(spec))


def options(tmp_path: Path) -> RunOptions:
    return RunOptions(results=tmp_path / "results", data=tmp_path / "data", address=None, mlflow=None)


def test_an_unchanged_plan_is_left_alone(folder: ResultsFolder, tmp_path: Path) -> None:
    file = study_file(tmp_path)
    claimed(folder, file)
    kept = (folder.study_file, folder.plan_file)
    before = [stamp(path) for path in kept]
    claimed(folder, file)
    assert [stamp(path) for path in kept] == before
    claimed(folder, study_file(tmp_path, **{"trials: 4": "trials: 5"}))
    assert all(stamp(path) != old for path, old in zip(kept, before, strict=True))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"address": "ray://127.0.0.1:10001"}, ClusterAddressError),
        ({"address": "nowhere"}, ClusterAddressError),
        ({"mlflow": "http://"}, MirrorError),
        ({"mlflow": "ftp://host"}, MirrorError),
    ],
)
def test_a_refused_address_leaves_nothing_behind(
    tmp_path: Path, change: dict[str, str], error: type[Exception]
) -> None:
    file = study_file(tmp_path)
    with pytest.raises(error):
        run_study(file, replace(options(tmp_path), **change), Console(file=io.StringIO()))
    assert list(tmp_path.iterdir()) == [file]


def test_a_new_folder_says_what_was_asked_for(folder: ResultsFolder, tmp_path: Path) -> None:
    file = study_file(tmp_path)
    claimed(folder, file)
    assert folder.study_file.read_bytes() == file.read_bytes()
    assert json.loads(folder.plan_file.read_text()) == json.loads(json.dumps(plan_document(plan(load_study(file)))))
    assert sorted(path.name for path in folder.root.iterdir()) == [
        "live",
        "plan.json",
        "records",
        "study.yaml",
        "weights",
    ]


@pytest.mark.parametrize(("taken", "option"), [("results", "--results"), ("data", "--data")])
def test_a_file_in_the_place_of_a_folder_is_named_with_its_option(tmp_path: Path, taken: str, option: str) -> None:
    (tmp_path / taken).write_text("")
    with pytest.raises(FolderError, match=rf"^{tmp_path / taken}: no folder .* name another with {option}$"):
        run_study(study_file(tmp_path), options(tmp_path), Console(file=io.StringIO()))


def test_ctrl_c_before_training_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(study_ray, "start_ray", interrupted)
    with pytest.raises(StudyInterruptedError) as caught:
        run_study(study_file(tmp_path), options(tmp_path), Console(file=io.StringIO()))
    assert str(caught.value) == (
        f"stopped; nothing that ended is lost; the same command goes on in {tmp_path / 'results'}"
    )


def test_failed_trials_are_told_with_a_command_that_can_be_pasted() -> None:
    assert failures_line(1, ResultsFolder(Path("/my results"))) == (
        "1 trial failed (python run_study.py status '/my results' names the causes, /my results/errors has the "
        "tracebacks); the same command tries again"
    )
    assert failures_line(2, ResultsFolder(Path("results"))).startswith("2 trials failed (python run_study.py status r")


def test_a_second_run_in_the_same_folder_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path / "results")
    with (
        Lease(folder),
        pytest.raises(ResultsFolderError, match="another run works in this folder"),
        Lease(ResultsFolder(tmp_path / "results")),
    ):
        pass
    with Lease(folder):
        pass


def end(file: Path, folder: ResultsFolder, fingerprint: str) -> None:
    """Run what is left of the study in ``file``, of which nothing is searched, with trials that train nothing."""
    claimed(folder, file)
    spec = load_study(file)

    def made(trial: PlannedTrial) -> TrialAssignment:
        told = {name: getattr(trial, name) for name in ("key", "cell", "phase", "number", "config")}
        return assignment(folder.root, data_fingerprint=fingerprint, study=spec.name, **told)

    coordinator = StudyCoordinator(spec, plan(spec), folder, {"digits": fingerprint}, made)
    while (trial := coordinator.next_trial()) is not None:
        ended = record(trial, 2, status="finished", reason="max_epochs", test_metric=0.5, ended_at=9.0)
        write_record(ended, folder.live_record(trial.key, trial.attempt))
        coordinator.end(trial.key)


def last_lines(study: StudyEnd, folder: ResultsFolder, mlflow: str | None = None) -> str:
    screen = io.StringIO()
    print_outcome(study.tables, folder.root, mlflow, Console(file=screen))
    return screen.getvalue().partition("\nMLflow:")[2]


def test_a_run_that_finds_all_done_brings_the_database_of_the_folder_up_to_date(
    folder: ResultsFolder, tmp_path: Path
) -> None:
    """As after a run that was killed between its last trial and the mirror's last pass, or an edit of the caption."""
    fingerprint = prepare("digits", tmp_path / "data").fingerprint
    text = "name: made\ncaption: first\narms: {dataset: digits, backbone: gcn, hidden_dim: 6, layers: 2}\n"
    file = tmp_path / "study.yaml"
    file.write_text(f"{text}fixed: {{max_epochs: 2}}\nconfirm: {{seeds: [41]}}\n")
    end(file, folder, fingerprint)
    found_done = run_study(file, options(tmp_path), Console(file=io.StringIO()))
    uri = default_tracking_uri(folder.root)
    assert not (folder.root / "mlflow.db").exists(), "no mirror was ever asked for here"
    assert f"no database of its own; python run_study.py rebuild-mlflow {folder.root} makes it" in last_lines(
        found_done, folder
    )
    assert "mlflow.db" not in last_lines(found_done, folder), "it is not there to be opened"
    assert "http://host:5000" in last_lines(found_done, folder, "http://host:5000")
    MlflowMirror(uri, folder.root).sync_folder()
    assert f"--backend-store-uri {uri} " in last_lines(found_done, folder)

    file.write_text(f"{text.replace('first', 'second')}fixed: {{max_epochs: 2}}\nconfirm: {{seeds: [41, 95]}}\n")
    end(file, folder, fingerprint)
    run_study(file, options(tmp_path), Console(file=io.StringIO()))
    client = MlflowClient(uri)
    found = client.search_runs([client.get_experiment_by_name("made").experiment_id])
    assert sorted((run.data.tags["level"], run.data.tags.get("seed"), run.info.status) for run in found) == [
        ("cell", None, "FINISHED"),
        ("study", None, "FINISHED"),
        ("trial", "41", "FINISHED"),
        ("trial", "95", "FINISHED"),
    ]
    (study,) = (run for run in found if run.data.tags["level"] == "study")
    assert study.data.tags["mlflow.note.content"] == "second"
    assert [file.path for file in client.list_artifacts(study.info.run_id)] == ["tables"]
