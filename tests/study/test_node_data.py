"""Where a trial finds its dataset on a node, and that all trials of a node pull it once."""

from __future__ import annotations

import multiprocessing
import shutil
from dataclasses import replace
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from made_trials import assignment, config

from bimp.data import DataError, prepare
from bimp.data.manifest import read_manifest
from bimp.data.transfer import put_prepared
from study import node_data
from study.location import location
from study.node_data import cache_folder, open_on_node
from study.records import read_record
from study.results import ResultsFolder
from study.trial import train_trial

NOWHERE = Path("/nowhere/at/all")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    prepare("digits", root)
    return root


@pytest.fixture
def store(data: Path, tmp_path: Path) -> Path:
    put_prepared(data / "digits", tmp_path / "store")
    return tmp_path / "store"


@pytest.fixture
def version(data: Path) -> str:
    return read_manifest(data / "digits").fingerprint


def environment(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


def pulled_to(tmp_path: Path, version: str) -> Path:
    return tmp_path / "cache" / "bimp-study" / "data" / version


def test_a_node_that_sees_the_driver_s_folder_pulls_nothing(data: Path, version: str, tmp_path: Path) -> None:
    opened = open_on_node("digits", data, version, NOWHERE, environment(tmp_path))
    assert opened.fingerprint == version
    assert not (tmp_path / "cache").exists()


def test_other_data_in_the_place_of_the_driver_s_folder_is_not_taken(store: Path, version: str, tmp_path: Path) -> None:
    """A node may have a folder of that name of its own."""
    other = tmp_path / "data"
    prepare("cluster", other, seed=1, size=20)
    (other / "cluster").rename(other / "digits")
    opened = open_on_node("digits", other, version, store, environment(tmp_path))
    assert opened.fingerprint == version
    assert (pulled_to(tmp_path, version) / "digits").is_dir()


def test_a_node_s_own_folder_is_used_as_it_is(data: Path, version: str, tmp_path: Path) -> None:
    opened = open_on_node("digits", NOWHERE, version, NOWHERE, {"BIMP_DATA": str(data)})
    assert opened.fingerprint == version
    assert not (data / "pulled").exists()


def test_where_a_node_keeps_what_it_pulled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert cache_folder({"BIMP_DATA": "/scratch/ann", "XDG_CACHE_HOME": "/x"}) == Path("/scratch/ann/pulled")
    assert cache_folder({"XDG_CACHE_HOME": "/x"}) == Path("/x/bimp-study/data")
    assert cache_folder({}) == Path("/home/ann/.cache/bimp-study/data")


def test_what_was_damaged_since_it_was_pulled_is_pulled_anew(store: Path, version: str, tmp_path: Path) -> None:
    opened = open_on_node("digits", NOWHERE, version, store, environment(tmp_path))
    file = pulled_to(tmp_path, version) / "digits" / "x.bin"
    before = file.read_bytes()
    del opened
    file.write_bytes(bytes([before[0] ^ 1]) + before[1:])
    open_on_node("digits", NOWHERE, version, store, environment(tmp_path))
    assert file.read_bytes() == before


def test_a_cache_that_cannot_be_written_is_named(store: Path, version: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"pulled/.*/digits: cannot be written .* another folder .* in BIMP_DATA$"):
        open_on_node("digits", NOWHERE, version, store, {"BIMP_DATA": str(tmp_path / "file")})


def test_a_dataset_goes_through_an_object_store(data: Path, version: str, bucket_url: str, tmp_path: Path) -> None:
    store = location(f"{bucket_url}/results/data")
    assert put_prepared(data / "digits", store) == version
    opened = open_on_node("digits", NOWHERE, version, location(str(store)), environment(tmp_path))
    assert opened.fingerprint == version
    pulled = pulled_to(tmp_path, version) / "digits"
    assert (pulled / "x.bin").read_bytes() == (data / "digits" / "x.bin").read_bytes()


def pull_at_once(barrier: Barrier, store: Path, version: str, cache: Path, log: Path) -> None:
    """In a process of its own: a trial that begins."""
    pull = node_data.pull_prepared

    def told(place: Path, target: Path) -> None:
        with log.open("a") as file:
            file.write("pulled\n")
        pull(place, target)

    node_data.pull_prepared = told
    barrier.wait(timeout=60)
    opened = open_on_node("digits", NOWHERE, version, store, {"BIMP_DATA": str(cache)})
    with log.open("a") as file:
        file.write(f"opened {opened.fingerprint} {opened.graphs.x.shape[0]}\n")


def test_trials_that_begin_at_once_pull_once(store: Path, version: str, tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    barrier, log = spawn.Barrier(2), tmp_path / "log"
    given = (barrier, store, version, tmp_path / "cache", log)
    trials = [spawn.Process(target=pull_at_once, args=given) for _ in range(2)]
    for trial in trials:
        trial.start()
    for trial in trials:
        trial.join(timeout=120)
        assert trial.exitcode == 0
    lines = log.read_text().splitlines()
    nodes = open_on_node("digits", NOWHERE, version, store, {"BIMP_DATA": str(tmp_path / "cache")}).graphs.x.shape[0]
    assert sorted(lines) == [*[f"opened {version} {nodes}"] * 2, "pulled"]


def test_a_trial_on_a_node_without_the_data_ends_as_one_with_it(
    data: Path, store: Path, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BIMP_DATA", str(tmp_path / "node"))
    folder = ResultsFolder(tmp_path / "results")
    folder.create()
    near = assignment(folder.root, data, config=config(max_epochs=2), data_fingerprint=version)
    # A trial of another name, to have a record of its own.
    far = replace(near, key="far", data_root=str(tmp_path / "not here"), data_version=version, data_store=str(store))
    losses = []
    for trial in (near, far):
        list(train_trial(trial))
        losses.append([epoch.val_loss for epoch in read_record(folder.live_record(trial.key, trial.attempt)).epochs])
    assert losses[0] == losses[1]
    assert len(losses[0]) == 2
    assert (tmp_path / "node" / "pulled" / version / "digits").is_dir()
    shutil.rmtree(tmp_path / "node")
