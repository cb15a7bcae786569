"""Released weights: every documented combination is written by the released names and read back."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from graph_batches import GRAPHS, batch_of
from released_names import exported
from torch import Tensor, nn
from torch.testing import assert_close

from bimp.config import ModelConfig
from bimp.data.batch import GraphBatch
from bimp.network import Network
from bimp.released import ReleasedError, load_config, load_network, read_checkpoint
from bimp.row_norm import RowNorm
from bimp.tasks import TaskSpec, task_of

DATASETS = ["ZINC", "MNIST", "CIFAR10", "TSP", "SBM_CLUSTER", "SBM_PATTERN", "DD", "ENZYMES", "PROTEINS_full"]
MODELS = ["GCN", "GraphSage", "GAT", "GatedGCN"]
NAMES = [*MODELS, *(f"bi{name}{suffix}" for name in MODELS for suffix in ("", "_IL", "_ALL"))]


def configuration(model: str, dataset: str, **net_params: Any) -> dict[str, Any]:
    width = {"hidden_dim": 4, "n_heads": 3} if "GAT" in model else {"hidden_dim": 12}
    values = {"L": 4, **width, "out_dim": 12, "assign_dim": 5, "sigma": 1, "residual": True, "batch_norm": True}
    return {"model": model, "dataset": dataset, "params": {}, "net_params": {**values, **net_params}}


def filled(network: Network, seed: int = 0) -> Network:
    torch.manual_seed(seed)
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.5)
    for module in network.modules():
        if isinstance(module, RowNorm):
            nn.init.normal_(module.running_mean)
            nn.init.uniform_(module.running_var, 0.5, 2)
            module.num_batches_tracked.fill_(7)
    return network.double().eval()


def inputs_of(task: TaskSpec, model: ModelConfig) -> GraphBatch:
    generator = torch.Generator().manual_seed(3)
    nodes, edges = sum(graph.nodes for graph in GRAPHS), sum(len(graph.edges) for graph in GRAPHS)

    def inputs(kind: str, rows: int, width: int) -> Tensor:
        if kind == "embedding":
            return torch.randint(width, (rows,), generator=generator)
        return torch.randn(rows, width, dtype=torch.float64, generator=generator)

    x = inputs(task.node_input, nodes, task.node_dim)
    edge_attr = None if task.edge_input == "ones" else inputs(task.edge_input, edges, task.edge_dim)
    batch = batch_of(*GRAPHS, x=x, edge_attr=edge_attr)
    return batch if model.pos_enc_dim is None else replace(batch, pos_enc=inputs("linear", nodes, model.pos_enc_dim))


def assert_same(found: Network, expected: Network, batch: GraphBatch) -> None:
    for training in (False, True):
        one, other = found.train(training)(batch), expected.train(training)(batch)
        assert_close(one.scores, other.scores, rtol=0, atol=1e-12)
        assert len(one.gates) == len(other.gates)
        for gate, other_gate in zip(one.gates, other.gates, strict=True):
            assert_close(gate.beta_hat, other_gate.beta_hat, rtol=0, atol=1e-12)
    for (name, value), other_value in zip(found.state_dict().items(), expected.state_dict().values(), strict=True):
        assert_close(value, other_value, rtol=0, atol=1e-12, msg=name)


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("model", NAMES)
@pytest.mark.parametrize("pos_enc", [False, True], ids=["plain", "encoded"])
def test_every_name_round_trips(model: str, dataset: str, pos_enc: bool) -> None:
    given = configuration(model, dataset, pos_enc=pos_enc, **({"pos_enc_dim": 4} if pos_enc else {}))
    config = load_config(given)
    task = task_of(config.dataset)
    network = filled(Network(config.model, task))
    loaded = load_network(exported(network, per_head=config.model.attention_slope == 0.01), given)
    assert loaded.model == config.model
    assert not loaded.training
    assert_same(loaded, network, inputs_of(task, config.model))


def test_names_of_a_bilateral_gat_by_hand() -> None:
    network = filled(Network(load_config(configuration("biGAT", "ZINC")).model, task_of("zinc")))
    names = {name for name in exported(network) if name.startswith(("layers.1.", "embedding", "layers.3."))}
    head = ["fc.weight", "attn_fc.weight", "batchnorm_h.weight", "batchnorm_h.bias", "batchnorm_h.running_mean",
            "batchnorm_h.running_var", "batchnorm_h.num_batches_tracked"]  # fmt: skip
    assert names == {
        "embedding_h.weight",
        *(f"layers.1.{part}.{kind}" for part in ("s1", "s2", "metric") for kind in ("weight", "bias")),
        *(f"layers.1.heads.{number}.{name}" for number in range(3) for name in head),
        *(f"layers.3.gatconv.{name}" for name in ("fc.weight", "attn_l", "attn_r")),
        *(f"layers.3.{name}" for name in head if name.startswith("batchnorm_h")),
    }


def test_conv_weights_are_symmetric_and_transposed() -> None:
    model = replace(load_config(configuration("GCN", "ZINC")).model, gcn_normalisation="symmetric")
    network = filled(Network(model, task_of("zinc")))
    weights = exported(network)
    assert weights["layers.0.conv.weight"].shape == (12, 12)
    assert torch.equal(weights["layers.0.conv.weight"], network.layers[0].update.weight.t())
    loaded = load_network(weights, configuration("GCN", "ZINC"))
    assert loaded.model.gcn_normalisation == "symmetric"
    assert_same(loaded, network, inputs_of(network.task, model))


@pytest.mark.parametrize("dataset", ["ZINC", "MNIST", "SBM_CLUSTER"])
def test_weights_tell_the_slope_and_biases_of_heads(dataset: str) -> None:
    config = load_config(configuration("biGAT", dataset))
    model = replace(config.model, attention_slope=0.01, attention_bias=True, gated_attention_bias=True)
    network = filled(Network(model, task_of(config.dataset)))
    loaded = load_network(exported(network, per_head=True), config)
    assert loaded.model == model
    assert_same(loaded, network, inputs_of(network.task, model))


def test_weights_tell_the_width_of_the_last_gates_assignment() -> None:
    config = load_config(configuration("biGAT_ALL", "MNIST"))
    model = replace(config.model, assignment_width="head")
    network = filled(Network(model, task_of("smnist")))
    weights = exported(network)
    assert (weights["layers.0.s1.weight"].shape, weights["layers.3.s1.weight"].shape) == ((4, 12), (12, 12))
    loaded = load_network(weights, config)
    assert loaded.model == model
    assert_same(loaded, network, inputs_of(network.task, model))


def test_block_models_take_the_last_width_of_the_weights() -> None:
    config = load_config(configuration("biGAT", "SBM_CLUSTER"))
    assert config.model.last_dim == 4
    wide = filled(Network(replace(config.model, out_dim=12), task_of("cluster")))
    assert load_network(exported(wide), config).model.last_dim == 12


def test_precision_is_that_of_the_weights() -> None:
    given = configuration("GCN", "ZINC")
    network = filled(Network(load_config(given).model, task_of("zinc")))
    double = exported(network)
    single = {name: value.float() if value.is_floating_point() else value for name, value in double.items()}
    assert load_network(double, given).head.scorer[0].weight.dtype == torch.float64
    assert load_network(single, given).head.scorer[0].weight.dtype == torch.float32


def test_unknown_and_missing_names_are_all_listed() -> None:
    given = configuration("biGCN", "ZINC")
    weights = exported(filled(Network(load_config(given).model, task_of("zinc"))))
    del weights["layers.1.s2.bias"], weights["embedding_h.weight"]
    weights["layers.9.extra"] = weights["mystery"] = torch.zeros(1)
    with pytest.raises(ReleasedError) as caught:
        load_network(weights, given)
    assert str(caught.value) == (
        "released weights: found other names than the configuration's network has: "
        "unknown layers.9.extra, mystery; missing embedding_h.weight, layers.1.s2.bias"
    )


def test_weights_of_another_placement_are_refused() -> None:
    dense = exported(filled(Network(load_config(configuration("biGCN_ALL", "ZINC")).model, task_of("zinc"))))
    with pytest.raises(ReleasedError, match=r"unknown layers\.0\.s1\.weight"):
        load_network(dense, configuration("biGCN", "ZINC"))


def test_weights_of_another_width_are_refused() -> None:
    given = configuration("GCN", "ZINC")
    weights = exported(filled(Network(load_config(given).model, task_of("zinc"))))
    weights["layers.2.apply_mod.linear.weight"] = torch.zeros(7, 12, dtype=torch.float64)
    with pytest.raises(ReleasedError, match=r"layers\.2\.apply_mod\.linear\.weight: found shape \[7, 12\]"):
        load_network(weights, given)


def test_checkpoints_bare_and_wrapped(tmp_path: Path) -> None:
    given = configuration("biGatedGCN", "ENZYMES")
    network = filled(Network(load_config(given).model, task_of("enzymes")))
    bare, wrapped = tmp_path / "bare.pkl", tmp_path / "wrapped.pt"
    torch.save(exported(network), bare)
    torch.save({"state_dict": exported(network), "epoch": 3}, wrapped)
    # Comparing trains both by a step: the second file is compared with what the first became.
    first, second = load_network(bare, given), load_network(wrapped, given)
    assert_same(first, network, inputs_of(network.task, network.model))
    assert all(torch.equal(read_checkpoint(bare)[name], value) for name, value in read_checkpoint(wrapped).items())
    assert second.model == first.model


class Harmful:
    """What a pickle must not be able to do here."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("exit 1",)


@pytest.mark.parametrize("content", [Harmful(), [1, 2], {"a": 1}, {}])
def test_checkpoints_that_are_none(tmp_path: Path, content: object) -> None:
    path = tmp_path / "odd.pkl"
    torch.save(content, path)
    with pytest.raises(ReleasedError, match=r"odd\.pkl: found"):
        read_checkpoint(path)


def test_a_cut_checkpoint_a_wrong_byte_and_a_missing_one(tmp_path: Path) -> None:
    path = tmp_path / "cut.pkl"
    torch.save({"a name": torch.zeros(1000)}, path)
    whole = path.read_bytes()
    path.write_bytes(whole[:500])
    (tmp_path / "wrong.pkl").write_bytes(whole.replace(b"a name", b"a\xffname"))
    for name in ("cut.pkl", "wrong.pkl", "none.pkl"):
        with pytest.raises(ReleasedError, match=rf"{name}: found no checkpoint that can be read safely"):
            read_checkpoint(tmp_path / name)
