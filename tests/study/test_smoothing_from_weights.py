"""Over-smoothing from kept weights: against rows caught by hooks, graph by graph, and what a wrong folder brings."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from bimp.config import ModelConfig, TrainConfig, TrialConfig, trial_key
from bimp.data import DataError, PreparedDataset, prepare
from bimp.network import Network
from bimp.smoothing import dirichlet_energy, group_distance_ratio, instance_information_gain, mean_average_distance
from bimp.tasks import task_of
from study import smoothing
from study.assignment import TrialAssignment
from study.growing_record import initial_record
from study.records import RecordError, TrialRecord, write_record
from study.results import ResultsFolder
from study.smoothing import SmoothingError, measure_study
from study.smoothing_records import MEASURES, read_smoothing

LAYERS = 3


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    prepare("cluster", root, seed=3, size=30)
    return root


@pytest.fixture(scope="module")
def dataset(data: Path) -> PreparedDataset:
    return prepare("cluster", data, seed=3, size=30)


def config_of(seed: int = 41, pos_enc_dim: int | None = None) -> TrialConfig:
    model = ModelConfig(
        backbone="gcn",
        layers=LAYERS,
        hidden_dim=12,
        placement="boosting",
        gate="bilateral",
        num_clusters=4,
        sigma_m=1.0,
        pos_enc_dim=pos_enc_dim,
    )
    train = TrainConfig(max_epochs=1, batch_size=8, learning_rate=1e-3, unsupervised_weight=1.0)
    return TrialConfig(dataset="cluster", model=model, train=train, seed=seed)


def network_of(config: TrialConfig) -> Network:
    torch.manual_seed(config.seed)
    return Network(config.model, task_of(config.dataset)).eval()


def confirmed(
    results: Path, data: Path, dataset: PreparedDataset, seed: int = 41, pos_enc_dim: int | None = None
) -> TrialRecord:
    """A finished confirm trial on record, with weights of a fresh network."""
    folder = ResultsFolder(results)
    folder.create()
    config = config_of(seed, pos_enc_dim)
    assignment = TrialAssignment(
        key=trial_key(config, "confirm", dataset.fingerprint),
        study="made",
        cell="cluster-gcn",
        phase="confirm",
        number=None,
        chosen_from="0",
        budget=None,
        config=config,
        data_fingerprint=dataset.fingerprint,
        data_root=str(data),
        results=str(results),
        threads=1,
        use_gpu=False,
        git_commit=None,
        git_dirty=None,
    )
    record = initial_record(assignment, "cpu").sealed("finished", "max_epochs", 2.0)
    write_record(record, folder.record(record.key))
    kept = {"config": config.to_dict(), "network": network_of(config).state_dict()}
    torch.save(kept, folder.final_weights(record.key))
    return record


def test_kept_rows_are_what_the_layers_gave(dataset: PreparedDataset) -> None:
    network = network_of(config_of())
    caught: list[Tensor] = []
    hooked = [network.node_embedding, *network.layers]
    handles = [module.register_forward_hook(lambda *call: caught.append(call[-1])) for module in hooked]
    batch = dataset.graphs.gather(torch.arange(4))
    with torch.no_grad():
        plain = network(batch)
        caught.clear()
        output = network(batch, keep_rows=True)
    for handle in handles:
        handle.remove()
    assert plain.rows == ()
    assert torch.equal(output.scores, plain.scores)
    assert len(output.rows) == LAYERS + 1
    assert all(torch.equal(rows, given) for rows, given in zip(output.rows, caught, strict=True))


def test_values_are_those_of_each_graph_alone(
    tmp_path: Path, data: Path, dataset: PreparedDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smoothing, "MOST_PAIRS", 40_000)
    record = confirmed(tmp_path, data, dataset)
    (done,) = measure_study(tmp_path, data)
    assert (done.record.key, done.new) == (record.key, True)
    assert done.path is not None
    table = read_smoothing(done.path)
    test = dataset.split("test")
    assert table.num_rows == len(test) * (LAYERS + 1)
    network = network_of(config_of())
    rows = {(row["graph"], row["layer"]): row for row in table.to_pylist()}
    for graph in test.indices.tolist():
        batch = dataset.graphs.gather(torch.tensor([graph]))
        with torch.no_grad():
            kept = network(batch, keep_rows=True).rows
        x = F.one_hot(batch.x.long(), 7)
        for layer, h in enumerate(kept):
            row = rows[graph, layer]
            expected = (
                instance_information_gain(x, h, batch.ptr),
                instance_information_gain(x, h, batch.ptr, "gaussian"),
                group_distance_ratio(h, batch.y, batch.ptr),
                dirichlet_energy(h, batch.edge_index, batch.ptr),
                mean_average_distance(h, batch.ptr),
            )
            assert [row[name] for name in MEASURES] == pytest.approx([float(value) for value in expected], rel=1e-4)
            assert (row["cell"], row["seed"], row["fold"]) == ("cluster-gcn", 41, None)


def test_what_was_measured_stays_unless_forced(tmp_path: Path, data: Path, dataset: PreparedDataset) -> None:
    confirmed(tmp_path, data, dataset)
    (first,) = measure_study(tmp_path, data)
    assert first.path is not None
    before = first.path.stat().st_mtime_ns
    (second,) = measure_study(tmp_path, data)
    assert (second.new, second.path) == (False, first.path)
    assert first.path.stat().st_mtime_ns == before
    (third,) = measure_study(tmp_path, data, force=True)
    assert third.new


def test_a_trial_without_weights_is_named_and_left_out(tmp_path: Path, data: Path, dataset: PreparedDataset) -> None:
    confirmed(tmp_path, data, dataset, seed=41)
    lost = confirmed(tmp_path, data, dataset, seed=95)
    ResultsFolder(tmp_path).final_weights(lost.key).unlink()
    paths = {done.record.seed: done.path for done in measure_study(tmp_path, data)}
    assert paths[95] is None
    assert paths[41] is not None


def test_trials_that_are_not_finished_confirm_ones_do_not_count(
    tmp_path: Path, data: Path, dataset: PreparedDataset
) -> None:
    record = confirmed(tmp_path, data, dataset)
    superseded = replace(record, status="superseded")
    write_record(superseded, ResultsFolder(tmp_path).record(record.key))
    with pytest.raises(SmoothingError, match="found no finished confirm trial"):
        list(measure_study(tmp_path, data))


def test_weights_of_another_configuration_are_refused(tmp_path: Path, data: Path, dataset: PreparedDataset) -> None:
    record = confirmed(tmp_path, data, dataset, seed=41)
    other = confirmed(tmp_path / "other", data, dataset, seed=95)
    weights = ResultsFolder(tmp_path).final_weights(record.key)
    weights.write_bytes(ResultsFolder(tmp_path / "other").final_weights(other.key).read_bytes())
    with pytest.raises(SmoothingError, match=f"{weights}: found weights of another configuration"):
        list(measure_study(tmp_path, data))
    weights.write_bytes(b"cut")
    with pytest.raises(SmoothingError, match=f"{weights}: not readable as weights"):
        list(measure_study(tmp_path, data))


def test_a_wrong_byte_is_told_in_one_line(tmp_path: Path, data: Path, dataset: PreparedDataset) -> None:
    """In weights and in values it may make a text that is none, for which the libraries have no error of their own."""
    record = confirmed(tmp_path, data, dataset)
    folder = ResultsFolder(tmp_path)
    weights = folder.final_weights(record.key)
    whole = weights.read_bytes()
    weights.write_bytes(whole.replace(b"network", b"net\xffork"))
    with pytest.raises(
        SmoothingError, match=rf"{weights}: not readable as weights \(wrong checksum of .*data.pkl\); remove"
    ):
        list(measure_study(tmp_path, data))
    weights.write_bytes(whole)
    (done,) = measure_study(tmp_path, data)
    assert done.path is not None
    done.path.write_bytes(done.path.read_bytes().replace(b"dirichlet_energy", b"dirichlet\xffenergy"))
    with pytest.raises(RecordError, match=f"{done.path}: not a readable Parquet file"):
        read_smoothing(done.path)


def test_data_that_was_prepared_anew_without_the_encodings_is_told_in_one_line(
    tmp_path: Path, data: Path, dataset: PreparedDataset
) -> None:
    """Its fingerprint is the same."""
    confirmed(tmp_path, data, dataset, pos_enc_dim=4)
    message = r"cluster: found 0 positional encodings, expected 4; run `run_study.py prepare cluster .* --pos-enc 4`$"
    with pytest.raises(DataError, match=message):
        list(measure_study(tmp_path, data))


def test_reading_values_starts_no_threads(tmp_path: Path, data: Path, dataset: PreparedDataset) -> None:
    """One of Arrow's ended one run of five of `smoothing` by SIGABRT, behind its last line."""
    confirmed(tmp_path, data, dataset)
    (done,) = measure_study(tmp_path, data)
    script = (
        "import sys, psutil, pathlib; from study.smoothing_records import read_smoothing; "
        "before = psutil.Process().num_threads(); read_smoothing(pathlib.Path(sys.argv[1])); "
        "print(psutil.Process().num_threads() - before)"
    )
    told = subprocess.run([sys.executable, "-c", script, str(done.path)], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "0"


def test_a_cut_file_of_values_is_refused(tmp_path: Path, data: Path, dataset: PreparedDataset) -> None:
    record = confirmed(tmp_path, data, dataset)
    list(measure_study(tmp_path, data))
    path = ResultsFolder(tmp_path).smoothing(record.key)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(RecordError, match=r"remove it, and run `run_study.py smoothing` again"):
        list(measure_study(tmp_path, data))


def test_graph_labels_give_no_ratio_and_numbers_enter_as_they_are(tmp_path: Path) -> None:
    digits = prepare("digits", tmp_path)
    model = ModelConfig(backbone="gcn", layers=2, hidden_dim=8)
    network = Network(model, task_of("digits")).eval()
    batch = digits.graphs.gather(torch.arange(2))
    values = smoothing.measure_batch(network, batch)
    assert len(values) == 3
    assert all(math.isnan(ratio) for layer in values for ratio in layer["group_distance_ratio"])
    with torch.no_grad():
        h = network(batch, keep_rows=True).rows[2]
    expected = instance_information_gain(batch.x, h, batch.ptr).tolist()
    assert values[2]["information_gain_kde"] == pytest.approx(expected)
