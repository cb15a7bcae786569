from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrize import register_parametrization
from torch.nn.utils.prune import identity
from torch.testing import assert_close

from bimp.config import BACKBONES, Backbone
from bimp.data import GraphBatch, GraphSplit
from bimp.device.resident import ResidentGraphs
from bimp.device.shapes import Shape
from bimp.embedded import Embedded, embedded_from, map_rows
from bimp.kernels.linear import Linear
from bimp.layers.gcn import GCNLayer
from bimp.losses import supervised_loss
from bimp.network import Network
from bimp.semantics import Semantics
from bimp.tasks import task_of
from tests.bimp.device.drawn_graphs import DATASETS, drawn, trial

NUMBERS = torch.tensor([2, 0, 1, 2, 2])
TABLE = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
WEIGHT = torch.tensor([[1.0, 0.0], [0.0, 10.0], [1.0, 1.0]])
BIAS = torch.tensor([100.0, 200.0, 300.0])


def test_map_of_embedded_numbers() -> None:
    mapped = Embedded(NUMBERS, TABLE).mapped(WEIGHT, BIAS)
    of_two, of_zero, of_one = [105, 260, 311], [101, 220, 303], [103, 240, 307]
    assert mapped.tolist() == [of_two, of_zero, of_one, of_two, of_two]


def test_map_of_mapped_inputs() -> None:
    # Rows 1 * 2 + 7 and -1 * 2 + 8 for the input 2; then each column of WEIGHT.
    embedded = Embedded(torch.tensor([[2.0], [0.0]]), torch.tensor([[1.0], [-1.0]]), torch.tensor([7.0, 8.0]))
    assert embedded.mapped(WEIGHT, BIAS).tolist() == [[109, 260, 315], [107, 280, 315]]
    assert embedded.mapped(WEIGHT).tolist() == [[9, 60, 15], [7, 80, 15]]


def test_map_of_columns_and_what_is_added() -> None:
    numbers, inputs = Embedded(NUMBERS, TABLE), Embedded(TABLE, torch.tensor([[1.0, 0.5], [2.0, -1.0]]), BIAS[:2])
    assert numbers.added(WEIGHT) is None
    for embedded in (numbers, inputs):
        columns, of_columns = embedded.as_map(WEIGHT)
        added = embedded.added(WEIGHT)
        found = columns @ of_columns.t() + (0 if added is None else added)
        assert_close(found, embedded.mapped(WEIGHT))
    assert numbers.as_map(WEIGHT)[0].tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("embedding", [nn.Embedding(3, 8), Linear(2, 8)], ids=["numbers", "inputs"])
def test_gradients_are_those_of_the_rows(embedding: nn.Embedding | Linear, has_bias: bool) -> None:
    embedding = embedding.double()
    inputs = torch.randint(3, (20,)) if isinstance(embedding, nn.Embedding) else torch.randn(20, 2).double()
    embedded = embedded_from(embedding, inputs)
    weight, bias = torch.randn(5, 8).double().requires_grad_(), torch.randn(5).double().requires_grad_()
    rows, grad = embedding(inputs), torch.randn(20, 5).double()
    leaves = [weight, *embedding.parameters(), *([bias] if has_bias else [])]
    expected = torch.autograd.grad(F.linear(rows, weight, bias if has_bias else None), leaves, grad)
    found = torch.autograd.grad(map_rows(rows, weight, bias if has_bias else None, embedded), leaves, grad)
    assert embedded is not None
    assert_close(found, expected)


def test_only_where_rows_or_inputs_are_few() -> None:
    assert embedded_from(nn.Embedding(5, 8), torch.zeros(20, dtype=torch.int64)) is not None
    assert embedded_from(nn.Embedding(5, 8), torch.zeros(19, dtype=torch.int64)) is None
    assert embedded_from(Linear(2, 8), torch.zeros(1, 2)) is not None
    assert embedded_from(Linear(3, 8), torch.zeros(1, 3)) is None
    assert embedded_from(nn.Linear(2, 8), torch.zeros(1, 2)) is None  # a map of another kind, as a stack's
    assert embedded_from(nn.Identity(), torch.zeros(1, 2)) is None
    assert embedded_from(Linear(2, 8), torch.zeros(1, 2, requires_grad=True)) is None
    assert embedded_from(Linear(2, 8).half(), torch.zeros(1, 2).half()) is None


def test_only_of_modules_that_nothing_was_added_to() -> None:
    numbers, inputs = torch.zeros(20, dtype=torch.int64), torch.zeros(1, 2)

    def taken(embedding: nn.Module) -> bool:
        return embedded_from(embedding, numbers if isinstance(embedding, nn.Embedding) else inputs) is not None

    for make in (lambda: nn.Embedding(5, 8), lambda: Linear(2, 8)):
        for hook in (
            "register_forward_hook",
            "register_forward_pre_hook",
            "register_full_backward_hook",
            "register_full_backward_pre_hook",
        ):
            hooked = make()
            handle = getattr(hooked, hook)(lambda *_: None)
            assert not taken(hooked)
            handle.remove()
            assert taken(hooked)
        parametrised, pruned, replaced = make(), make(), make()
        register_parametrization(parametrised, "weight", nn.Identity())
        assert not taken(parametrised)
        assert not taken(identity(pruned, "weight"))
        replaced.forward = lambda given: given  # type: ignore[method-assign, assignment]
        assert not taken(replaced)
    assert not taken(nn.Embedding(5, 8, padding_idx=0))
    assert not taken(nn.Embedding(5, 8, max_norm=1.0))
    assert not taken(nn.Embedding(5, 8, scale_grad_by_freq=True))
    assert not taken(nn.Embedding(5, 8, sparse=True))


@pytest.mark.parametrize("is_padded", [False, True])
@pytest.mark.parametrize("dataset", ["zinc", "digits"])  # rows of numbers, and of inputs
@pytest.mark.parametrize("backbone", BACKBONES)
def test_what_a_hook_makes_of_the_rows_is_what_the_layers_see(
    backbone: Backbone, dataset: str, is_padded: bool
) -> None:
    """A hook that doubles the rows does what doubled weights do."""
    config = trial(dataset, backbone, model={"hidden_dim": 6 if backbone == "gat" else 12})
    batch = as_double(padded(drawn(dataset, 30)) if is_padded else next(iter(drawn(dataset, 30).batches(30))))
    torch.manual_seed(0)
    hooked = Network(config.model, task_of(dataset)).double().eval()
    doubled = deepcopy(hooked)
    with torch.no_grad():
        for parameter in doubled.node_embedding.parameters():
            parameter.mul_(2)
        before = hooked(batch).scores
        hooked.node_embedding.register_forward_hook(lambda _, __, rows: 2 * rows)
        assert_close(hooked(batch).scores, doubled(batch).scores)
    assert not torch.allclose(before, doubled(batch).scores)


def padded(split: GraphSplit) -> GraphBatch:
    resident = ResidentGraphs.of(split.graphs, torch.device("cpu"))
    nodes, edges = (int(counts[split.indices].sum()) for counts in (split.graphs.node_counts, split.graphs.edge_counts))
    return resident.gather(split.indices, Shape(len(split), nodes + 5, edges + 7), padded=True)


def as_double(batch: GraphBatch) -> GraphBatch:
    floats = {
        field: value.double()
        for field, value in vars(batch).items()
        if isinstance(value, Tensor) and value.is_floating_point()
    }
    return GraphBatch(**{**{name: getattr(batch, name) for name in batch.__dataclass_fields__}, **floats})


def result_and_gradients(network: Network, batch: GraphBatch) -> list[Tensor]:
    output = network(batch)
    loss = supervised_loss(network.task.kind, output.scores, batch.y) + output.unsupervised_loss
    gradients = torch.autograd.grad(loss, list(network.parameters()), allow_unused=True, materialize_grads=True)
    return [output.scores.detach(), *gradients]


@pytest.mark.parametrize("semantics", ["paper", "released"])
@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("backbone", BACKBONES)
def test_first_layer_equals_that_of_the_rows(
    backbone: Backbone, dataset: str, semantics: Semantics, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = {"hidden_dim": 6 if backbone == "gat" else 12}  # four times the inputs of every dataset
    config = trial(dataset, backbone, semantics=semantics, model=wide)
    split = drawn(dataset, 80)
    batch = next(iter(split.batches(80)))
    torch.manual_seed(0)
    network = Network(config.model, task_of(dataset)).double().train()
    batch = as_double(batch)
    made: list[Embedded] = []
    monkeypatch.setattr("bimp.network.embedded_from", lambda *given: made.append(embedded_from(*given)) or made[-1])
    found = result_and_gradients(network, batch)
    monkeypatch.setattr("bimp.network.embedded_from", lambda *_: None)
    expected = result_and_gradients(network, batch)
    assert made
    assert None not in made
    assert_close(found, expected, rtol=1e-9, atol=1e-11)


def test_gcn_maps_few_rows_before_it_sums_them() -> None:
    layer = GCNLayer(4).double().train()
    batch = next(iter(drawn("cluster", 30).batches(30)))
    embedding = nn.Embedding(7, 4).double()
    beta_hat = torch.rand(batch.num_edges, dtype=torch.float64)
    rows = embedding(batch.x)
    assert_close(
        layer(rows, batch.adjacency, beta_hat, Embedded(batch.x, embedding.weight)),
        layer(rows, batch.adjacency, beta_hat),
    )


@pytest.mark.parametrize("backbone", BACKBONES)
def test_kept_rows_and_inputs_lead_to_the_scores(backbone: Backbone) -> None:
    """Gradients of the embedded rows, or of the edges' inputs, are whole: as finite differences have them."""
    config = trial("digits", backbone, model={"hidden_dim": 6 if backbone == "gat" else 12})
    torch.manual_seed(0)
    network = Network(config.model, task_of("digits")).double().eval()
    drawn_batch = next(iter(drawn("digits", 10).batches(10)))
    assert drawn_batch.edge_attr is not None
    batch = replace(drawn_batch, x=drawn_batch.x.double(), edge_attr=drawn_batch.edge_attr.double().requires_grad_())
    output = network(batch, keep_rows=True)
    by_rows = torch.autograd.grad(output.scores.square().sum(), output.rows[0], retain_graph=True)[0]
    # The bias of the embedding is in every row.
    by_bias = torch.autograd.grad(network(batch).scores.square().sum(), network.node_embedding.bias)[0]
    assert_close(by_rows.sum(0), by_bias)
    if backbone == "gated_gcn":

        def score(edge_attr: Tensor) -> Tensor:
            scores: Tensor = network(replace(batch, edge_attr=edge_attr)).scores
            return scores.square().sum()

        (found,) = torch.autograd.grad(score(batch.edge_attr), batch.edge_attr)
        step = torch.zeros_like(batch.edge_attr)
        place = int(found.abs().argmax())
        step.view(-1)[place] = 1e-6
        with torch.no_grad():
            expected = (score(batch.edge_attr + step) - score(batch.edge_attr - step)) / 2e-6
        assert_close(found.view(-1)[place], expected, rtol=1e-4, atol=1e-9)
