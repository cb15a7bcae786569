"""What nobody else may do to a study, or read from it: files that run code, names that lead away, passwords."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from made_trials import assignment, record

from bimp.data import open_prepared, prepare
from study.cluster import masked_command
from study.live_trial import TrialProgress
from study.plan import plan
from study.records import read_record, write_record
from study.results import FIRST_ATTEMPT, ResultsFolder, ResultsFolderError
from study.spec import SpecError, read_study, study_text
from study.trial import train_trial

ROOT = Path(__file__).parents[2]
CODE = [
    ROOT / "run_study.py",
    ROOT / "aggregate.py",
    *(path for folder in ("bimp", "study", "reports", "benchmarks") for path in sorted((ROOT / folder).rglob("*.py"))),
]

MAY_UNPICKLE = {"bimp/data/images.py"}
"""CIFAR10 is published as pickles; only what the user vouches for is read."""


def calls(path: Path) -> list[tuple[str, ast.Call]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [(ast.unparse(node.func), node) for node in ast.walk(tree) if isinstance(node, ast.Call)]


def test_torch_loads_in_one_place_which_takes_weights_only_and_looks_at_checksums() -> None:
    loads = [
        (path.relative_to(ROOT).as_posix(), ast.unparse(call))
        for path in CODE
        for name, call in calls(path)
        if name in ("torch.load", "load_file")
    ]
    assert [path for path, _ in loads] == ["bimp/data/torch_files.py"]
    assert "weights_only=True" in loads[0][1]


def test_nothing_else_runs_what_it_reads() -> None:
    forbidden = {"pickle.load", "pickle.loads", "cloudpickle.load", "cloudpickle.loads", "joblib.load", "eval", "exec"}
    found = [
        f"{path.relative_to(ROOT)}: {ast.unparse(call)}"
        for path in CODE
        for name, call in calls(path)
        if (name in forbidden or "allow_pickle=True" in ast.unparse(call))
        and path.relative_to(ROOT).as_posix() not in MAY_UNPICKLE
    ]
    assert found == []


class Trap:
    """Unpickling it makes the file that it names."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    prepare("digits", root)
    return root


@pytest.mark.parametrize("how", ["torch.save", "pickle"])
def test_a_checkpoint_that_holds_code_is_not_run_and_the_trial_begins_at_the_beginning(
    tmp_path: Path, data: Path, how: str
) -> None:
    sprung = tmp_path / "sprung"
    folder = ResultsFolder(tmp_path / "results")
    folder.create()
    trial = assignment(folder.root, data, data_fingerprint=open_prepared("digits", data).fingerprint)
    write_record(record(trial, epochs=2), folder.live_record(trial.key, FIRST_ATTEMPT))
    content = {"epoch": 2, "status": "running", "trap": Trap(sprung)}
    if how == "pickle":
        folder.checkpoint(trial.key, FIRST_ATTEMPT).write_bytes(pickle.dumps(content, protocol=2))
    else:
        torch.save(content, folder.checkpoint(trial.key, FIRST_ATTEMPT))
    progress = next(train_trial(trial))
    assert isinstance(progress, TrialProgress)
    assert progress.epoch == 1
    assert read_record(folder.live_record(trial.key, FIRST_ATTEMPT)).num_epochs == 1
    assert not sprung.exists()
    torch.load(folder.checkpoint(trial.key, FIRST_ATTEMPT), weights_only=True)


STUDY = """
name: {name}
arms: {{dataset: digits, backbone: gcn, hidden_dim: 6, layers: 2}}
fixed: {{max_epochs: 1}}
confirm: {{seeds: [41]}}
"""
LEADING_AWAY = [
    "..",
    "../other",
    "/etc/study",
    "a/b",
    "a\\\\b",
    ".",
    ".hidden",
    "~",
    "a b",
    "name\\0",
    "-rf",
    "C:x",
    "",
]


@pytest.mark.parametrize("name", LEADING_AWAY)
def test_a_study_of_a_name_that_leads_away_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="name"):
        read_study(STUDY.format(name=f'"{name}"'))
    # Nor may --as give it one.
    file = tmp_path / "study.yaml"
    file.write_text(STUDY.format(name="good"))
    with pytest.raises(SpecError, match=r"--as: found .* letters, digits, - and _"):
        read_study(study_text(file, name), str(file))


def test_the_id_of_a_cell_is_one_part_of_a_path_whatever_its_arms_are_called() -> None:
    arms = "backbone: [gcn, benchmarks.faults.hungry:Large], placement: [none, boosting, [1, 2]], num_clusters: 3"
    spec = read_study(STUDY.format(name="cells").replace("backbone: gcn", arms))
    ids = [cell.id for cell in plan(spec).cells]
    assert len(set(ids)) == len(ids) == 6
    assert all(re.fullmatch(r"[a-z][A-Za-z0-9._-]*", name) for name in ids), ids


def places_of_a_key(folder: ResultsFolder) -> tuple[Callable[[str], Path], ...]:
    of_attempts = (folder.live_record, folder.checkpoint, folder.live_weights)
    return (
        folder.record,
        folder.live_folder,
        folder.final_weights,
        folder.smoothing,
        folder.error,
        *(partial(place, attempt=FIRST_ATTEMPT) for place in of_attempts),
        *(partial(place, "0a") for place in of_attempts),
    )


@given(st.text(max_size=12))
def test_whatever_the_key_no_path_leaves_the_folder(key: str) -> None:
    folder = ResultsFolder(Path("/results/study"))
    for place in places_of_a_key(folder):
        try:
            path = place(key)
        except ResultsFolderError:
            assert not key.isalnum() or not key.isascii()
        else:
            assert path.is_relative_to(folder.root)
            assert ".." not in path.parts


@pytest.mark.parametrize("key", ["..", "../x", "/etc/passwd", "a/b", ".", "", "a\0b", "a\\b", "-x"])
def test_a_key_that_leads_away_is_refused(key: str) -> None:
    folder = ResultsFolder(Path("/results/study"))
    for place in places_of_a_key(folder):
        with pytest.raises(ResultsFolderError, match="not the key of a trial"):
            place(key)


def test_the_command_that_ray_keeps_has_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    from ray._private import utils

    monkeypatch.setattr(
        utils, "get_entrypoint_name", lambda: "run_study.py run a.yaml --mlflow http://ann:s3cret@host/?api_key=s3cret"
    )
    with masked_command():
        assert utils.get_entrypoint_name() == "run_study.py run a.yaml --mlflow http://ann:***@host/?api_key=***"
    assert "s3cret" in utils.get_entrypoint_name()
