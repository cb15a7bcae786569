from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

from bimp.data import DataError, prepare
from bimp.evaluation import evaluate
from bimp.network import Network
from bimp.released import ReleasedError, load_config, load_network
from bimp.tasks import task_of
from study.released_checkpoint import evaluate_checkpoint, render_report

sys.path.insert(0, str(Path(__file__).parent.parent / "bimp"))
from released_names import exported

CONFIG: dict[str, Any] = {
    "model": "biGCN",
    "dataset": "SBM_CLUSTER",
    "params": {"batch_size": 3},
    "net_params": {"L": 2, "hidden_dim": 8, "pool_ratio": 0.1},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A prepared dataset, a checkpoint that needs its K read off the weights, and its configuration."""
    prepare("cluster", tmp_path / "data", seed=1, size=6)
    torch.manual_seed(0)
    network = Network(load_config(CONFIG, num_clusters=5).model, task_of("cluster"))
    torch.save(exported(network), tmp_path / "epoch_9.pkl")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    return tmp_path


def test_a_checkpoint_is_measured_on_every_split(folder: Path) -> None:
    report = evaluate_checkpoint(folder / "epoch_9.pkl", folder / "config.json", folder / "data")
    config = load_config(CONFIG, num_clusters=5)
    network = load_network(folder / "epoch_9.pkl", config)
    dataset = prepare("cluster", folder / "data", seed=1, size=6)
    assert report.config == config
    assert report.config.train.reduction == "batch"
    for name in ("train", "val", "test"):
        assert report.splits[name] == evaluate(network, config, dataset.split(name), "cpu")
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(render_report(report))
    text = console.export_text()
    assert f"CLUSTER: gcn of 2 layers, gated in layers 2, {report.params:,} parameters" in text
    assert f"{report.splits['test'].metric:.6f}" in text
    assert "metrics and losses are means of the batches' values, batches of 3" in text


def test_the_command(folder: Path) -> None:
    from run_study import app

    arguments = ["evaluate", str(folder / "epoch_9.pkl"), str(folder / "config.json"), "--data", str(folder / "data")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    report = evaluate_checkpoint(folder / "epoch_9.pkl", folder / "config.json", folder / "data")
    for split in report.splits.values():
        assert f"{split.metric:.6f}" in result.output


def test_files_that_do_not_belong_together(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({**CONFIG, "model": "biGCN_ALL"}), encoding="utf-8")
    with pytest.raises(ReleasedError, match=r"epoch_9\.pkl with .*config\.json: .* missing layers\.0\.metric\.bias"):
        evaluate_checkpoint(folder / "epoch_9.pkl", folder / "config.json", folder / "data")


def test_a_dataset_that_is_not_prepared_or_lacks_encodings(folder: Path) -> None:
    with pytest.raises(DataError, match=f"; run `run_study.py prepare cluster --data {folder / 'elsewhere'}`$"):
        evaluate_checkpoint(folder / "epoch_9.pkl", folder / "config.json", folder / "elsewhere")
    encoded = {**CONFIG, "net_params": {**CONFIG["net_params"], "pos_enc": True, "pos_enc_dim": 4}}
    (folder / "config.json").write_text(json.dumps(encoded), encoding="utf-8")
    with pytest.raises(DataError, match=f"expected 4; run `.* cluster --data {folder / 'data'} --pos-enc 4`$"):
        evaluate_checkpoint(folder / "epoch_9.pkl", folder / "config.json", folder / "data")
