from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from bimp.config import BACKBONES, Backbone, ConfigError, ModelConfig, TrainConfig, TrialConfig, trial_key
from bimp.data import GraphBatch, PackedGraphs
from bimp.kernels.linear import linear
from bimp.network import Network
from bimp.precision import output_of
from bimp.tasks import task_of

TRAIN = TrainConfig(max_epochs=3, batch_size=4, learning_rate=1e-3)
CONFIG = TrialConfig(dataset="zinc", model=ModelConfig(backbone="gcn", layers=2, hidden_dim=8), train=TRAIN, seed=41)
HALF = replace(CONFIG, train=replace(TRAIN, precision="bfloat16"))


def test_trials_in_full_precision_keep_the_keys_of_before_there_was_another() -> None:
    assert trial_key(CONFIG, "search", "data") == "6df606a5edfed30892d4"
    assert trial_key(HALF, "search", "data") != "6df606a5edfed30892d4"
    for config in (CONFIG, HALF):
        assert TrialConfig.from_dict(config.to_dict()) == config


def test_no_third_precision() -> None:
    with pytest.raises(ConfigError, match="precision: found 'float16', expected one of float32, bfloat16"):
        replace(TRAIN, precision="float16")


def test_a_product_is_rounded_to_eight_bits_and_given_in_full() -> None:
    rows, weight = torch.tensor([[1.001]]), torch.tensor([[3.0]])  # 1.001 lies between 1 and 1 + 1/128
    assert linear(rows, weight, None).item() == pytest.approx(3.003)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        product = linear(rows, weight, None)
    assert (product.item(), product.dtype) == (3.0, torch.float32)


def rings() -> GraphBatch:
    generator = torch.Generator().manual_seed(0)
    graphs = []
    for nodes in (3, 4, 6):
        source = torch.arange(nodes)
        target = (source + 1) % nodes
        graphs.append(
            Data(
                x=torch.rand(nodes, 3, generator=generator),
                edge_index=torch.stack([torch.cat([source, target]), torch.cat([target, source])]),
                edge_attr=torch.rand(2 * nodes, 1, generator=generator),
                y=torch.tensor([nodes]),
            )
        )
    return PackedGraphs.pack(graphs, labels="graph").gather(torch.arange(3))


@pytest.mark.parametrize("backbone", BACKBONES)
def test_only_products_are_in_half_precision(backbone: Backbone) -> None:
    torch.manual_seed(0)
    gate = {"placement": "dense", "gate": "bilateral", "num_clusters": 3, "sigma_m": 1.0}
    model = ModelConfig(backbone=backbone, layers=2, hidden_dim=16, **gate)  # type: ignore[arg-type]
    network, batch = Network(model, task_of("digits")), rings()
    full, half = (output_of(network, batch, precision) for precision in ("float32", "bfloat16"))
    assert not torch.equal(half.scores, full.scores)
    torch.testing.assert_close(half.scores, full.scores, rtol=0.1, atol=0.05)
    assert half.unsupervised_loss is not None
    assert {half.scores.dtype, half.unsupervised_loss.dtype} == {torch.float32}
    # The first gate sees rows that differ by a product's rounding, and is itself computed in full: shares sum to 1.
    sums = torch.zeros(batch.num_nodes).index_add(0, batch.edge_index[1], half.gates[0].beta_hat)
    torch.testing.assert_close(sums, torch.ones(batch.num_nodes), rtol=0, atol=1e-6)
    (half.scores.sum() + half.unsupervised_loss).backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is None or p.grad.dtype == torch.float32 for p in network.parameters())
