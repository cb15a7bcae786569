import errno
import json
import multiprocessing
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock

from bimp.data import SOURCES, DataError, PreparedDataset, load_or_prepare, open_prepared, prepare, storage
from bimp.data.cluster import Cluster
from bimp.data.positional import laplacian_eigenvectors
from bimp.data.source import SPLIT_NAMES, SourceGraphs, sizes_for
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


def inodes(root: Path) -> dict[str, int]:
    return {path.name: path.stat().st_ino for path in (root / "cluster").glob("*.bin")}


def test_positional_encodings_are_made_once_and_kept(tmp_path: Path) -> None:
    made = prepare("cluster", tmp_path, seed=3, size=4, positional_encodings=5)
    assert made.positional_encodings == 5
    assert made.graphs.pos_enc is not None
    assert "5 Laplacian positional encodings" in made.describe()
    batch = next(made.split("val").batches(1))
    expected = laplacian_eigenvectors(batch.edge_index.numpy(), batch.num_nodes, 5)
    assert torch.equal(batch.pos_enc, torch.from_numpy(expected))  # type: ignore[arg-type]
    inode = made_at(tmp_path)
    for wanted in (0, 3, 5):
        assert prepare("cluster", tmp_path, seed=3, size=4, positional_encodings=wanted).positional_encodings == 5
        assert load_or_prepare("cluster", tmp_path, positional_encodings=wanted).positional_encodings == 5
    assert made_at(tmp_path) == inode


@pytest.mark.parametrize("links", [True, False])
def test_positional_encodings_are_added_and_the_fingerprint_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    def no_links(*_: Any) -> None:
        raise OSError("not supported")

    if not links:
        monkeypatch.setattr("os.link", no_links)
    plain = prepare("cluster", tmp_path, seed=3, size=4)
    before = inodes(tmp_path)
    two = load_or_prepare("cluster", tmp_path, positional_encodings=2)
    with pytest.raises(DataError, match="found size=4, expected size=5"):
        prepare("cluster", tmp_path, seed=3, size=5, positional_encodings=3)
    three = prepare("cluster", tmp_path, positional_encodings=3)  # nothing asked of how the graphs were made
    assert (plain.positional_encodings, two.positional_encodings, three.positional_encodings) == (0, 2, 3)
    assert plain.fingerprint == two.fingerprint == three.fingerprint
    after = inodes(tmp_path)
    assert after.keys() == {*before, "pos_enc.bin"}
    assert {name: after[name] for name in before} == before or not links
    assert torch.equal(three.graphs.pos_enc[:, :2], two.graphs.pos_enc)  # type: ignore[index, arg-type]
    assert torch.equal(three.graphs.edge_index, plain.graphs.edge_index)
    fresh = prepare("cluster", tmp_path / "fresh", seed=3, size=4, positional_encodings=3)
    assert torch.equal(fresh.graphs.pos_enc, three.graphs.pos_enc)  # type: ignore[arg-type]
    assert visible(tmp_path) == ["cluster", "fresh"]


def test_adding_positional_encodings_that_breaks_keeps_the_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("no space left")

    first = prepare("cluster", tmp_path, size=2)
    monkeypatch.setattr("bimp.data.preparation.encodings_of", broken)
    with pytest.raises(RuntimeError):
        load_or_prepare("cluster", tmp_path, positional_encodings=2)
    assert visible(tmp_path) == ["cluster"]
    assert open_prepared("cluster", tmp_path, verify=True).fingerprint == first.fingerprint
    with pytest.raises(DataError, match="found -1 positional encodings, expected 0 or more"):
        prepare("cluster", tmp_path, size=2, positional_encodings=-1)


def test_a_manifest_of_an_earlier_version_is_still_good(tmp_path: Path) -> None:
    first = prepare("cluster", tmp_path, seed=3, size=4)
    path = tmp_path / "cluster/manifest.json"
    plain = json.loads(path.read_text())
    del plain["maker"], plain["statistics"]
    path.write_text(json.dumps(plain))
    assert prepare("cluster", tmp_path, seed=3, size=4).fingerprint == first.fingerprint
    assert load_or_prepare("cluster", tmp_path).statistics == first.statistics


def test_the_manifest_holds_the_statistics_of_the_tables(tmp_path: Path) -> None:
    dataset = prepare("cluster", tmp_path, seed=3, size=4)
    statistics = json.loads((tmp_path / "cluster/manifest.json").read_text())["statistics"]
    nodes = dataset.graphs.node_counts.tolist()
    edges = dataset.graphs.edge_counts.tolist()
    assert statistics == {
        "title": "CLUSTER",
        "task": "node_classification",
        "graphs": 6,
        "split_graphs": {"train": 4, "val": 1, "test": 1},
        "mean_nodes": sum(nodes) / 6,
        "max_nodes": max(nodes),
        "mean_edges": sum(edges) / 6,
        "mean_counted_edges": sum(edges) / 6,
        "counted": "directed",
        "node_features": "attribute",
        "node_dim": 7,
        "edge_features": None,
        "edge_dim": None,
        "outputs": 6,
    }


def test_another_fingerprint_is_refused(tmp_path: Path) -> None:
    prepare("cluster", tmp_path, size=2)
    with pytest.raises(DataError, match="expected 0123"):
        open_prepared("cluster", tmp_path, fingerprint="0123")


def test_what_is_not_prepared_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"zinc: found no folder.*run_study\.py prepare zinc"):
        open_prepared("zinc", tmp_path)
    with pytest.raises(DataError, match="'zinq', expected one of digits, zinc, smnist, cifar10, tsp, cluster, pattern"):
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


def test_what_mends_a_damaged_dataset_makes_the_same_data_again(tmp_path: Path) -> None:
    """Made anew without its options it would be of the published size, and no trial of a study would go on."""
    made = prepare("cluster", tmp_path, seed=3, size=2, positional_encodings=2)
    (tmp_path / "cluster/x.bin").write_bytes(b"cut")
    told = r"prepare cluster --data .* --maker generated --seed 3 --size 2 --pos-enc 2 --force`$"
    with pytest.raises(DataError, match=told):
        open_prepared("cluster", tmp_path)
    again = prepare("cluster", tmp_path, maker="generated", seed=3, size=2, positional_encodings=2, force=True)
    assert (again.fingerprint, again.positional_encodings) == (made.fingerprint, 2)


def test_a_file_in_the_place_of_a_dataset_is_not_in_the_way_twice(tmp_path: Path) -> None:
    (tmp_path / "cluster").touch()
    for seed in (3, 4):
        prepare("cluster", tmp_path, seed=seed, size=2, force=True)
        assert visible(tmp_path) == ["cluster"]


def test_a_dataset_that_is_a_link_is_prepared_anew_again_and_again(tmp_path: Path) -> None:
    """The data folder gets one of its own; what the link led to, which may be others' data, stays as it was."""
    theirs = prepare("cluster", tmp_path / "theirs", seed=3, size=2)
    root = tmp_path / "ours"
    root.mkdir()
    (root / "cluster").symlink_to(tmp_path / "theirs/cluster")
    for encodings in (2, 4):
        assert prepare("cluster", root, positional_encodings=encodings).positional_encodings == encodings
        assert visible(root) == ["cluster"]
    opened = open_prepared("cluster", tmp_path / "theirs", verify=True)
    assert (opened.fingerprint, opened.positional_encodings) == (theirs.fingerprint, 0)


def test_a_link_that_leads_nowhere_is_told_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cluster, "build", None)  # nobody calls it
    (tmp_path / "cluster").symlink_to(tmp_path / "a_disk_that_is_not_mounted")
    with pytest.raises(DataError, match=r"cluster: found a link that leads nowhere, .* or remove it"):
        load_or_prepare("cluster", tmp_path)


def test_what_is_there_is_opened_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = prepare("cluster", tmp_path, seed=3, size=2, positional_encodings=2)

    def refuse(self: FileLock) -> None:
        raise OSError(errno.EROFS, "Read-only file system", self.lock_file)

    monkeypatch.setattr(FileLock, "acquire", refuse)
    again = prepare("cluster", tmp_path, seed=3, size=2, positional_encodings=1)
    assert again.fingerprint == made.fingerprint
    with pytest.raises(OSError, match="Read-only"):
        prepare("cluster", tmp_path, seed=3, size=2, positional_encodings=3)


def test_a_disk_that_gets_full_is_told_with_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(storage, "write_tensor", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*/cluster'"):
        prepare("cluster", tmp_path, size=2)


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


@pytest.mark.parametrize("folds", [1, 3])
def test_a_split_without_graphs_is_never_prepared(tmp_path: Path, folds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    build = Cluster.build

    def without_validation(self: Cluster, *given: Any, **asked: Any) -> SourceGraphs:
        built = build(self, *given, **asked)
        splits = {name: (built.splits[name][0],) * folds for name in SPLIT_NAMES}
        return replace(built, splits={**splits, "val": (*splits["val"][1:], torch.arange(0))})

    monkeypatch.setattr(Cluster, "build", without_validation)
    of_fold = "" if folds == 1 else " of fold 2"
    with pytest.raises(DataError, match=rf"^cluster: found no graphs in split 'val'{of_fold}, expected at least one$"):
        prepare("cluster", tmp_path, size=2)
    assert visible(tmp_path) == []
    with monkeypatch.context() as patch:  # as an older version of this package would have left it
        patch.setattr("bimp.data.preparation.require_graphs", lambda *_: None)
        with pytest.raises(DataError, match=rf"cluster: found no graphs in split 'val'{of_fold}, .*cluster .*--force"):
            prepare("cluster", tmp_path, size=2)
    with pytest.raises(DataError, match=rf"cluster: found no graphs in split 'val'{of_fold}, .*cluster .*--force"):
        open_prepared("cluster", tmp_path)


def test_importing_loads_neither_image_and_tour_libraries_nor_the_datasets_of_pyg() -> None:
    code = (
        "import sys, bimp.data; late = ('sklearn', 'skimage', 'fast_tsp', 'torch_geometric.datasets', 'aiohttp'); "
        "print([name for name in late if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_size_is_a_tenth_for_the_other_splits_one_at_least_and_no_more_than_there_are() -> None:
    smnist = {"train": 55_000, "val": 5_000, "test": 10_000}
    assert sizes_for(55_000, smnist) == {"train": 55_000, "val": 5_000, "test": 5_500}
    assert sizes_for(5, smnist) == {"train": 5, "val": 1, "test": 1}
    assert sizes_for(None, smnist) == smnist


def test_the_maker_of_what_is_there_goes_on_unless_it_is_made_anew(tmp_path: Path) -> None:
    line = " ".join(f"{x} {x * x}" for x in range(30)) + " output " + " ".join(map(str, [*range(1, 31), 1]))
    (tmp_path / "tours.txt").write_text(f"{line}\n" * 12)
    made = prepare("tsp", tmp_path / "data", raw=tmp_path)
    assert prepare("tsp", tmp_path / "data").fingerprint == made.fingerprint
    with pytest.raises(DataError, match="maker 'tours', expected 'generated'"):
        prepare("tsp", tmp_path / "data", seed=0)
