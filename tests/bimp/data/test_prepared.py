import multiprocessing
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from bimp.data import SOURCES, DataError, PreparedDataset, load_or_prepare, open_prepared, prepare
from bimp.data.cluster import Cluster
from bimp.data.source import SourceGraphs
from bimp.tasks import TASKS


def made_at(root: Path) -> int:
    return (root / "cluster/manifest.json").stat().st_ino


def visible(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if path.suffix != ".lock")


def test_every_task_has_a_source() -> None:
    assert set(SOURCES) == set(TASKS)


def test_opening_gives_what_was_prepared(tmp_path: Path) -> None:
    made = prepare("cluster", tmp_path, seed=3, size=4)
    opened = open_prepared("cluster", tmp_path, verify=True, fingerprint=made.fingerprint)
    assert (opened.name, opened.fingerprint, opened.folds) == ("cluster", made.fingerprint, None)
    everything = torch.arange(6)
    first, second = made.graphs.gather(everything), opened.graphs.gather(everything)
    assert torch.equal(first.edge_index, second.edge_index)
    assert torch.equal(first.y, second.y)
    assert visible(tmp_path) == ["cluster"]
    assert opened.max_nodes == int(opened.graphs.node_counts.max())


def test_preparing_again_with_the_same_parameters_only_opens(tmp_path: Path) -> None:
    first = prepare("cluster", tmp_path, seed=3, size=4)
    inode = made_at(tmp_path)
    assert prepare("cluster", tmp_path, seed=3, size=4).fingerprint == first.fingerprint
    assert load_or_prepare("cluster", tmp_path).fingerprint == first.fingerprint
    assert made_at(tmp_path) == inode


def test_other_parameters_are_refused_and_forced(tmp_path: Path) -> None:
    first = prepare("cluster", tmp_path, seed=3, size=4)
    with pytest.raises(DataError, match=r"found seed=3, expected seed=5; .*--force"):
        prepare("cluster", tmp_path, seed=5, size=4)
    with pytest.raises(DataError, match=r"found size=4, expected size=10000; .*--force"):
        prepare("cluster", tmp_path, seed=3)
    second = prepare("cluster", tmp_path, seed=5, size=4, force=True)
    assert second.fingerprint != first.fingerprint
    assert open_prepared("cluster", tmp_path).fingerprint == second.fingerprint
    # What was opened before stays whole: its files live on as long as they are mapped.
    assert first.graphs.gather(torch.arange(6)).num_graphs == 6
    assert visible(tmp_path) == ["cluster"]


def test_another_fingerprint_is_refused(tmp_path: Path) -> None:
    prepare("cluster", tmp_path, size=2)
    with pytest.raises(DataError, match="expected 0123"):
        open_prepared("cluster", tmp_path, fingerprint="0123")


def test_what_is_not_prepared_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"zinc: found no folder.*run_study\.py prepare zinc"):
        open_prepared("zinc", tmp_path)
    with pytest.raises(DataError, match="'zinq', expected one of digits, zinc, cluster, enzymes"):
        prepare("zinq", tmp_path)
    with pytest.raises(DataError, match="'zinq'"):
        load_or_prepare("zinq", tmp_path)


@pytest.mark.parametrize("options", [{"seed": 1}, {"size": 1}, {"raw": Path("files")}])
def test_options_that_a_source_does_not_take_are_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=r"digits: found .* expected none"):
        prepare("digits", tmp_path, **options)
    assert visible(tmp_path) == []


def test_a_preparation_that_breaks_leaves_nothing_and_keeps_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Cluster, parameters: Any, **_: Any) -> SourceGraphs:
        raise RuntimeError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(Cluster, "build", broken)
        with pytest.raises(RuntimeError):
            prepare("cluster", tmp_path, size=2)
    assert visible(tmp_path) == []

    first = prepare("cluster", tmp_path, size=2)
    monkeypatch.setattr(Cluster, "build", broken)
    with pytest.raises(RuntimeError):
        prepare("cluster", tmp_path, size=3, force=True)
    assert visible(tmp_path) == ["cluster"]
    assert open_prepared("cluster", tmp_path, verify=True).fingerprint == first.fingerprint


def test_what_a_killed_preparation_left_is_no_dataset_and_is_cleared(tmp_path: Path) -> None:
    leftover = tmp_path / ".cluster.unfinished/cluster"
    leftover.mkdir(parents=True)
    (leftover / "x.bin").write_bytes(b"half")
    with pytest.raises(DataError, match="found no folder"):
        open_prepared("cluster", tmp_path)
    prepare("cluster", tmp_path, size=2)
    assert visible(tmp_path) == ["cluster"]


def test_two_threads_make_one_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builds = []
    both_running = threading.Barrier(2)
    build = Cluster.build

    def counted(self: Cluster, *args: Any, **kwargs: Any) -> SourceGraphs:
        builds.append(threading.get_ident())
        return build(self, *args, **kwargs)

    def one() -> PreparedDataset:
        both_running.wait(timeout=60)
        return prepare("cluster", tmp_path, size=30)

    monkeypatch.setattr(Cluster, "build", counted)
    with ThreadPoolExecutor(2) as pool:
        first, second = (future.result() for future in [pool.submit(one), pool.submit(one)])
    assert len(builds) == 1
    assert first.fingerprint == second.fingerprint


def prepare_in_a_process(root: Path) -> tuple[str, int]:
    dataset = prepare("cluster", root, size=30)
    return dataset.fingerprint, made_at(root)


def test_two_processes_make_one_dataset(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        first, second = pool.map(prepare_in_a_process, [tmp_path, tmp_path], chunksize=1)
    assert first == second
    assert visible(tmp_path) == ["cluster"]


def test_splits_and_folds_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    dataset = prepare("cluster", tmp_path, size=2)
    with pytest.raises(DataError, match="found split 'valid', expected one of train, val, test"):
        dataset.split("valid")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="found fold 0, expected none"):
        dataset.split("train", 0)


def test_importing_loads_neither_scikit_learn_nor_the_datasets_of_pyg() -> None:
    code = (
        "import sys, bimp.data; "
        "print([name for name in ('sklearn', 'torch_geometric.datasets', 'aiohttp') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
