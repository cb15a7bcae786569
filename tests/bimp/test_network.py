from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from graph_batches import DIRECTED, GRAPHS, ONE_NODE, PATH, WITH_ISOLATED, SmallGraph, batch_of
from torch import Tensor, nn
from torch.testing import assert_close
from torch_geometric.data import Data

from bimp.config import BACKBONES, ConfigError, ModelConfig, Placement
from bimp.data.batch import GraphBatch
from bimp.head import read_out
from bimp.network import Network
from bimp.row_norm import RowNorm
from bimp.tasks import TASKS, TaskKind, TaskSpec

EVERY_BACKBONE = pytest.mark.parametrize("backbone", BACKBONES)
ZINC = TASKS["zinc"]


def task_of_kind(kind: TaskKind) -> TaskSpec:
    return replace(
        ZINC, kind=kind, node_input="linear", node_dim=3, edge_input="linear", edge_dim=2,
        num_outputs=1 if kind == "graph_regression" else 5,
    )  # fmt: skip


def model_of(backbone: str, placement: Placement = "boosting", layers: int = 3, **settings: object) -> ModelConfig:
    heads = 2 if backbone == "gat" else 1
    values = {"backbone": backbone, "layers": layers, "placement": placement, "heads": heads, "hidden_dim": 8 // heads}
    gate = {} if placement == "none" else {"gate": "bilateral", "num_clusters": 3, "sigma_m": 0.5}
    return ModelConfig(**{**values, **gate, **settings})


def network_of(model: ModelConfig, task: TaskSpec, seed: int = 0) -> Network:
    """A network in float64 and evaluation mode whose normalisations are far from the identity."""
    torch.manual_seed(seed)
    network = Network(model, task).double().eval()
    for module in network.modules():
        if isinstance(module, RowNorm):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias)
            nn.init.normal_(module.running_mean)
            nn.init.uniform_(module.running_var, 0.5, 2)
    return network


def filled(*graphs: SmallGraph, seed: int = 0) -> GraphBatch:
    """A batch with random inputs, in float64."""
    generator = torch.Generator().manual_seed(seed)
    nodes, edges = sum(graph.nodes for graph in graphs), sum(len(graph.edges) for graph in graphs)
    return batch_of(
        *graphs,
        x=torch.randn(nodes, 3, dtype=torch.float64, generator=generator),
        edge_attr=torch.randn(edges, 2, dtype=torch.float64, generator=generator),
    )


def graph_of(batch: GraphBatch, number: int) -> GraphBatch:
    """One graph of a batch, as a batch of its own."""
    first, end = batch.ptr[number], batch.ptr[number + 1]
    edges = (batch.edge_index[1] >= first) & (batch.edge_index[1] < end)
    assert batch.edge_attr is not None
    return GraphBatch(
        x=batch.x[first:end],
        edge_index=batch.edge_index[:, edges] - first,
        edge_attr=batch.edge_attr[edges],
        y=batch.y[number : number + 1],
        batch=torch.zeros(int(end - first), dtype=torch.long),
        ptr=torch.tensor([0, int(end - first)]),
    )


@EVERY_BACKBONE
@pytest.mark.parametrize(
    "kind", ["graph_regression", "graph_classification", "node_classification", "edge_classification"]
)
@pytest.mark.parametrize("placement", ["none", "dense"])
def test_batch_equals_graph_by_graph(backbone: str, kind: TaskKind, placement: Placement) -> None:
    network = network_of(model_of(backbone, placement), task_of_kind(kind))
    batch = filled(*GRAPHS)
    together = network(batch)
    alone = [network(graph_of(batch, number)) for number in range(batch.num_graphs)]

    items = {"node_classification": batch.num_nodes, "edge_classification": batch.num_edges}.get(kind, len(GRAPHS))
    assert together.scores.shape == ((items,) if kind == "graph_regression" else (items, 5))
    assert_close(together.scores, torch.cat([output.scores for output in alone]))
    if placement == "none":
        assert together.unsupervised_loss is None
        assert together.gates == ()
    else:
        losses = torch.stack([output.unsupervised_loss for output in alone])
        assert_close(together.unsupervised_loss, losses.mean())


@EVERY_BACKBONE
@pytest.mark.parametrize("readout", ["mean", "sum", "max"])
def test_order_of_nodes_does_not_matter(backbone: str, readout: str) -> None:
    network = network_of(model_of(backbone, "interleaved", readout=readout), task_of_kind("graph_classification"))
    batch = filled(WITH_ISOLATED)
    new_number = torch.tensor([2, 0, 3, 1])
    edge_index = new_number[batch.edge_index]
    order = edge_index[1].argsort(stable=True)
    assert batch.edge_attr is not None
    permuted = replace(
        batch, x=batch.x[new_number.argsort()], edge_index=edge_index[:, order], edge_attr=batch.edge_attr[order]
    )
    assert not torch.equal(permuted.edge_index, batch.edge_index)
    expected, found = network(batch), network(permuted)
    assert_close(found.scores, expected.scores)
    assert_close(found.unsupervised_loss, expected.unsupervised_loss)


def by_its_parts(network: Network, batch: GraphBatch) -> Tensor:
    """Node rows after the last layer, one module after the other."""
    h, e_hat = network.node_embedding(batch.x), None
    if network.model.backbone == "gated_gcn":
        e_hat = network.edge_embedding(batch.edge_attr)
    for number, layer in enumerate(network.layers):
        gate = network.gates[str(number + 1)] if number + 1 in network.model.gated_layers else None
        beta_hat = None if gate is None else gate(h, batch).beta_hat
        if e_hat is None:
            h = layer(h, batch.adjacency, beta_hat)
        else:
            h, e_hat = layer(h, e_hat, batch.adjacency, beta_hat)
    return h


@EVERY_BACKBONE
@pytest.mark.parametrize(
    ("placement", "positions"), [("boosting", ["2"]), ("interleaved", ["2", "4"]), ((3, 1), ["1", "3"])]
)
def test_gates_stand_at_their_layers(backbone: str, placement: Placement, positions: list[str]) -> None:
    network = network_of(model_of(backbone, placement, layers=4), task_of_kind("edge_classification"))
    batch = filled(PATH, DIRECTED)
    assert list(network.gates) == positions
    output = network(batch)
    assert len(output.gates) == len(positions)
    h = by_its_parts(network, batch)
    source, destination = batch.edge_index
    assert_close(output.scores, network.head.scorer(torch.cat([h[source], h[destination]], 1)))
    losses = [gate.unsupervised_loss.item() for gate in output.gates]
    assert output.unsupervised_loss.item() == pytest.approx(sum(losses) / len(losses))


def test_gate_changes_the_scores() -> None:
    batch = filled(DIRECTED, PATH)
    bilateral = network_of(model_of("gated_gcn"), task_of_kind("graph_regression"))
    uniform = Network(model_of("gated_gcn", gate="uniform"), task_of_kind("graph_regression")).double().eval()
    uniform.load_state_dict(bilateral.state_dict())
    assert [name for name, _ in uniform.named_parameters()] == [name for name, _ in bilateral.named_parameters()]
    assert not torch.allclose(uniform(batch).scores, bilateral(batch).scores, rtol=0, atol=1e-6)
    degree = torch.bincount(batch.edge_index[1], minlength=batch.num_nodes)
    assert_close(uniform(batch).gates[0].beta_hat, 1 / degree[batch.edge_index[1]].double())


def test_read_out_by_hand() -> None:
    batch = batch_of(SmallGraph(3), SmallGraph(1))
    rows = torch.tensor([[1.0, -1.0], [2.0, -5.0], [6.0, -3.0], [4.0, -2.0]])
    assert read_out(rows, batch, "mean").tolist() == [[3, -3], [4, -2]]
    assert read_out(rows, batch, "sum").tolist() == [[9, -9], [4, -2]]
    assert read_out(rows, batch, "max").tolist() == [[6, -1], [4, -2]]


def test_heads_have_three_layers_or_one() -> None:
    def widths(head: str, kind: TaskKind) -> list[tuple[int, int]]:
        network = Network(model_of("gcn", head=head), task_of_kind(kind))
        layers = [module for module in network.head.modules() if isinstance(module, nn.Linear)]
        return [(layer.in_features, layer.out_features) for layer in layers]

    assert widths("mlp", "graph_classification") == [(8, 4), (4, 2), (2, 5)]
    assert widths("mlp", "edge_classification") == [(16, 8), (8, 4), (4, 5)]
    assert widths("linear", "graph_regression") == [(8, 1)]


def test_last_layer_of_gat_has_a_single_head() -> None:
    network = Network(model_of("gat", "none", layers=3), ZINC)
    assert [layer.attention_source.shape for layer in network.layers] == [(2, 4), (2, 4), (1, 8)]


def test_inputs_as_the_task_describes_them() -> None:
    zinc, enzymes = Network(model_of("gated_gcn"), ZINC), Network(model_of("gated_gcn"), TASKS["enzymes"])
    assert isinstance(zinc.node_embedding, nn.Embedding)
    assert zinc.node_embedding.weight.shape == (28, 8)
    assert isinstance(zinc.edge_embedding, nn.Embedding)
    assert zinc.edge_embedding.weight.shape == (4, 8)
    assert enzymes.edge_embedding.weight.shape == (8, 18)
    assert not any("edge_embedding" in name for name in Network(model_of("gcn"), ZINC).state_dict())


def test_constant_ones_on_edges() -> None:
    ones = network_of(model_of("gated_gcn"), replace(task_of_kind("graph_regression"), edge_input="ones"))
    given = network_of(model_of("gated_gcn"), task_of_kind("graph_regression"))
    given.load_state_dict(ones.state_dict())
    batch = filled(DIRECTED, ONE_NODE)
    without = ones(replace(batch, edge_attr=None)).scores
    assert_close(without, given(replace(batch, edge_attr=torch.ones(batch.num_edges, 2).double())).scores)


@EVERY_BACKBONE
@pytest.mark.parametrize("graphs", [(ONE_NODE,), (ONE_NODE, ONE_NODE), (SmallGraph(2, ((0, 1),)),), GRAPHS])
@pytest.mark.parametrize("sigma_m", [1e-3, 1e3])
def test_training_step_stays_finite(backbone: str, graphs: tuple[SmallGraph, ...], sigma_m: float) -> None:
    torch.manual_seed(0)
    network = Network(model_of(backbone, "dense", sigma_m=sigma_m), task_of_kind("graph_regression"))
    batch = filled(*graphs)
    assert batch.edge_attr is not None
    batch = replace(batch, x=batch.x.float(), edge_attr=batch.edge_attr.float())
    output = network(batch)
    assert output.unsupervised_loss is not None
    (output.scores.square().mean() + output.unsupervised_loss).backward()
    gradients = [parameter.grad for parameter in network.parameters() if parameter.grad is not None]
    assert gradients
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert all(value.isfinite().all() for value in network.state_dict().values())


TAKEN_OUT = {
    "gcn": ("update.bias",),
    "gated_gcn": ("edge_source.bias", "edge_destination.bias", "edge_self.bias", "node_self.bias"),
}
"""What batch normalisation by the rows' own mean makes indifferent, by backbone."""


def test_every_parameter_of_a_bilateral_network_learns() -> None:
    """But for those whose gradient is 0, and not what rounding leaves of it."""
    for backbone in BACKBONES:
        # A linear head: ReLUs as few as the mlp's of this width may all be shut.
        network = network_of(model_of(backbone, "dense", head="linear"), task_of_kind("node_classification")).train()
        output = network(filled(*GRAPHS, seed=3))
        (output.scores.square().mean() + output.unsupervised_loss).backward()
        idle = [name for name, p in network.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
        taken_out = TAKEN_OUT.get(backbone, ())
        assert idle == [name for name, _ in network.named_parameters() if name.endswith(taken_out)]


@pytest.mark.parametrize("first", [torch.inference_mode, torch.no_grad])
@pytest.mark.parametrize("gate", ["bilateral", "uniform"])
@EVERY_BACKBONE
def test_a_batch_can_be_trained_on_whatever_saw_it_first(backbone: str, gate: str, first: type) -> None:
    task = task_of_kind("graph_classification")
    network = network_of(model_of(backbone, gate=gate), task).train()

    def gradients(batch: GraphBatch) -> list[Tensor]:
        output = network(batch)
        loss = output.scores.square().sum() + output.unsupervised_loss
        return list(torch.autograd.grad(loss, list(network.parameters()), allow_unused=True, materialize_grads=True))

    batch = filled(*GRAPHS)
    with first():
        network(batch)
    assert all(map(torch.equal, gradients(batch), gradients(filled(*GRAPHS))))


def turned(tensor: Tensor) -> Tensor:
    """The same numbers, column by column in memory."""
    return tensor.t().contiguous().t()


@EVERY_BACKBONE
@pytest.mark.parametrize("is_training", [True, False])
def test_how_a_batch_lies_in_memory_changes_nothing(backbone: str, is_training: bool) -> None:
    # Edges written down as pairs and turned by .t() lie so; read as if they did not, neighbourhoods were others'.
    network = network_of(model_of(backbone, "dense"), task_of_kind("graph_regression")).train(is_training)
    batch = filled(*GRAPHS)
    assert batch.edge_attr is not None
    other = replace(batch, x=turned(batch.x), edge_index=turned(batch.edge_index), edge_attr=turned(batch.edge_attr))
    assert not other.edge_index[1].is_contiguous()
    found = []
    for each in (batch, other):
        output = network(each)
        (output.scores.square().sum() + output.unsupervised_loss).backward()
        found.append([output.scores, *(parameter.grad for parameter in network.parameters())])
        network.zero_grad()
    assert_close(found[1], found[0], rtol=1e-9, atol=1e-12)


def test_unsorted_edges_are_refused() -> None:
    batch = filled(PATH)
    backwards = replace(batch, edge_index=batch.edge_index.flip(1))
    assert any(later < earlier for earlier, later in pairwise(backwards.edge_index[1].tolist()))
    with pytest.raises(ValueError, match="sorted by destination"):
        network_of(model_of("gcn"), task_of_kind("graph_regression"))(backwards)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"edge_index": [[0, 3, 0, 0], [1, 2, 2, 2]]}, "batch.edge_index: found nodes 0 to 3, expected 0 to 2"),
        ({"edge_index": [[0, 1, 1, 1], [1, 2, 2, 9]]}, "batch.edge_index: found nodes 0 to 9, expected 0 to 2"),
        ({"edge_index": [[-1, 2, 2, 2], [1, 2, 2, 2]]}, "batch.edge_index: found nodes -1 to 2, expected 0 to 2"),
        ({"edge_index": [[0, 2, 2, 2], [-9, 2, 2, 2]]}, "batch.edge_index: found nodes -9 to 2, expected 0 to 2"),
        ({"edge_index": [[0.0] * 4, [1.0] * 4]}, "batch.edge_index: found torch.float32, expected torch.int64"),
        ({"ptr": [0, 2]}, "batch.x: found 3 nodes, expected those of its graphs, 3 by batch.batch and 2 by batch.ptr"),
        (
            {"batch": [0, 0]},
            "batch.x: found 3 nodes, expected those of its graphs, 2 by batch.batch and 3 by batch.ptr",
        ),
        ({"ptr": [0, 3, 3]}, "batch.ptr: found no node of graph 1, expected one or more; leave such graphs out"),
        ({"ptr": [0, 5, 3]}, "batch.ptr: found 0 first or a descent, expected offsets ascending from 0"),
        ({"ptr": [1, 3]}, "batch.ptr: found 1 first or a descent, expected offsets ascending from 0"),
        *(
            (
                {"ptr": [0, 1, 3], "batch": graphs},
                "batch.batch: found other graphs than batch.ptr tells, expected the same, in ascending order",
            )
            for graphs in ([0, 0, 1], [1, 0, 1])
        ),
        ({"x": [[1.0, 2.0]] * 3}, r"batch.x: found \[3, 2\], expected 3 columns"),
        ({"x": [1, 2, 3]}, r"batch.x: found \[3\], expected 3 columns"),
        ({"x": [[1.0, 2.0, 3.0]] * 3}, "batch.x: found torch.float32, expected torch.float64 as the network has it"),
        ({"edge_attr": [[1.0, 2.0]] * 3}, "batch.edge_attr: found 3 rows, expected 4, one an edge"),
        ({"edge_index": [[0, 1], [1, 2]]}, "batch.edge_attr: found 4 rows, expected 2, one an edge"),
        ({"edge_attr": [1, 2, 3, 4]}, r"batch.edge_attr: found \[4\], expected 2 columns"),
    ],
)
def test_a_batch_that_is_none_is_told_in_one_line(given: dict[str, list[list[float]]], message: str) -> None:
    network = network_of(model_of("gated_gcn"), task_of_kind("graph_regression"))
    batch = replace(filled(PATH), **{name: torch.tensor(values) for name, values in given.items()})
    with pytest.raises(ValueError, match=f"^{message}$"):
        network(batch)


def test_inputs_of_another_dataset_and_graphs_of_another_library_are_told_apart() -> None:
    numbers = network_of(model_of("gcn"), ZINC)
    with pytest.raises(ValueError, match=r"^batch.x: found torch.float64 \[3, 3\], expected one whole .* below 28$"):
        numbers(filled(PATH))
    with pytest.raises(TypeError, match=r"^batch: found Data, expected a GraphBatch; bimp.data.PackedGraphs.pack\("):
        numbers(Data(x=torch.zeros(3), edge_index=torch.empty(2, 0)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": [0, 28, 1]}, "batch.x: found 0 to 28, expected 0 to 27"),
        ({"x": [-1, 27, 1]}, "batch.x: found -1 to 27, expected 0 to 27"),
        ({"x": [True] * 3}, r"batch.x: found torch.bool \[3\], expected one whole .*"),
        ({"edge_attr": [0, 1, 4, 0]}, "batch.edge_attr: found 0 to 4, expected 0 to 3"),
    ],
)
def test_numbers_that_are_not_embedded_are_told(given: dict[str, list[int]], message: str) -> None:
    whole = {"x": torch.tensor([0, 27, 1]), "edge_attr": torch.tensor([0, 1, 3, 0])}
    network = network_of(model_of("gated_gcn"), ZINC)
    assert network(replace(filled(PATH), **whole)).scores.isfinite().all()
    with pytest.raises(ValueError, match=f"^{message}$"):
        network(replace(filled(PATH), **{**whole, **{name: torch.tensor(values) for name, values in given.items()}}))


def test_positional_encodings_of_another_type_are_told() -> None:
    network = network_of(model_of("gcn", pos_enc_dim=2), task_of_kind("graph_regression"))
    with pytest.raises(ValueError, match=r"^batch.pos_enc: found torch.float32, expected torch.float64 as the network"):
        network(replace(filled(PATH), pos_enc=torch.ones(3, 2)))


def test_positional_encodings_of_other_nodes_are_told() -> None:
    network = network_of(model_of("gcn", pos_enc_dim=2), task_of_kind("graph_regression"))
    with pytest.raises(ValueError, match=r"^batch.pos_enc: found 1 rows, expected 3, one a node$"):
        network(replace(filled(PATH), pos_enc=torch.ones(1, 2, dtype=torch.float64)))


def test_missing_edge_inputs_are_named() -> None:
    with pytest.raises(ValueError, match=r"batch.edge_attr: found None, expected the edge inputs of zinc"):
        network_of(model_of("gated_gcn"), task_of_kind("graph_regression"))(replace(filled(PATH), edge_attr=None))


@pytest.mark.parametrize(
    ("hidden_dim", "heads", "head", "kind"),
    [(3, 1, "mlp", "graph_regression"), (1, 2, "mlp", "graph_regression"), (1, 1, "mlp", "edge_classification")],
)
def test_too_narrow_for_the_head(hidden_dim: int, heads: int, head: str, kind: TaskKind) -> None:
    model = ModelConfig(backbone="gat" if heads > 1 else "gcn", layers=2, hidden_dim=hidden_dim, heads=heads, head=head)
    with pytest.raises(ConfigError, match=f"hidden_dim: found {hidden_dim}, expected {hidden_dim + 1} or more"):
        Network(model, task_of_kind(kind))
    Network(replace(model, hidden_dim=hidden_dim + 1), task_of_kind(kind))
    Network(replace(model, head="linear"), task_of_kind(kind))


@pytest.mark.parametrize(
    ("backbone", "setting", "value"),
    [
        ("gcn", "gcn_normalisation", "symmetric"),
        ("graphsage", "concatenated_row", "pooled"),
        ("gated_gcn", "edge_gate", "raw"),
        ("gat", "attention_slope", 0.01),
        ("gat", "gated_attention_slope", 0.01),
        ("gcn", "metric_relu", True),
        ("gcn", "distance_epsilon", 1e-2),
        ("gcn", "gate_normalisation", "softmax"),
        ("gcn", "gate_epsilon", 1e-2),
        ("gcn", "cut_scope", "batch"),
        ("gcn", "cut_adjacency", "raw"),
        ("gcn", "cut_epsilon", 1e-2),
    ],
)
def test_each_setting_can_be_switched_alone(backbone: str, setting: str, value: object) -> None:
    # A linear head: ReLUs as few as the mlp's of this width may all be shut.
    model, task, batch = model_of(backbone, head="linear"), task_of_kind("node_classification"), filled(*GRAPHS, seed=3)
    plain, switched = network_of(model, task), network_of(replace(model, **{setting: value}), task)
    switched.load_state_dict(plain.state_dict())
    before, after = plain(batch), switched(batch)
    only_the_loss = setting.startswith("cut_")
    assert torch.equal(before.scores, after.scores) == only_the_loss
    assert before.unsupervised_loss is not None
    assert after.unsupervised_loss is not None
    if only_the_loss:
        assert not torch.allclose(before.unsupervised_loss, after.unsupervised_loss, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("backbone", "setting", "value", "more"),
    [
        ("gcn", "metric_bias", True, 3),
        ("gcn", "assignment_bias", False, -(8 + 3)),
        ("gat", "gated_attention_bias", True, 2 * (4 + 1)),
        # Layer 1 has two heads of 4, layer 3 one of 8.
        ("gat", "attention_bias", True, 2 * (4 + 1) + (8 + 1)),
        ("gated_gcn", "edge_features", "ones", 0),
    ],
)
def test_settings_that_add_parameters(backbone: str, setting: str, value: object, more: int) -> None:
    task = task_of_kind("graph_regression")
    plain, switched = (
        sum(parameter.numel() for parameter in Network(model, task).parameters())
        for model in (model_of(backbone), replace(model_of(backbone), **{setting: value}))
    )
    assert switched - plain == more


def test_edge_features_of_ones_ignore_what_is_given() -> None:
    batch = filled(DIRECTED, ONE_NODE)
    network = network_of(model_of("gated_gcn", edge_features="ones"), task_of_kind("graph_regression"))
    assert_close(network(batch).scores, network(replace(batch, edge_attr=None)).scores, rtol=0, atol=0)
    zinc = Network(model_of("gated_gcn", edge_features="ones"), ZINC)
    assert zinc.edge_embedding.weight.shape == (8, 1)


def test_a_narrower_last_layer() -> None:
    for backbone in BACKBONES:
        network = network_of(model_of(backbone, "dense", out_dim=5), task_of_kind("node_classification"))
        assert network.head.scorer[0].in_features == 5
        assert network(filled(DIRECTED, PATH)).scores.shape == (7, 5)
    with pytest.raises(ConfigError, match="out_dim: found 3, expected 4 or more"):
        Network(model_of("gcn", out_dim=3), task_of_kind("graph_regression"))
