from __future__ import annotations

import io
from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from bimp.config import ModelConfig, TrainConfig, TrialConfig
from bimp.data import DataError, GraphBatch, GraphSplit, PackedGraphs
from bimp.engine import CheckpointError, EpochResult, fit, load_network
from bimp.evaluation import evaluate
from bimp.losses import supervised_loss
from bimp.measurement import DivergedError, Evaluation
from bimp.network import Network
from bimp.stack.team import SeedRun
from bimp.stack.together import fit_together
from bimp.tasks import task_of

MODEL = ModelConfig(
    backbone="gcn", layers=2, hidden_dim=8, placement="boosting", gate="bilateral", num_clusters=3, sigma_m=1.0
)
TRAIN = TrainConfig(max_epochs=6, batch_size=4, learning_rate=1e-2, lr_patience=2, unsupervised_weight=1.0)
CONFIG = TrialConfig(dataset="digits", model=MODEL, train=TRAIN, seed=41)


def ring(nodes: int, label: int) -> Data:
    source = torch.arange(nodes)
    target = (source + 1) % nodes
    generator = torch.Generator().manual_seed(nodes * 10 + label)
    return Data(
        x=torch.rand(nodes, 3, generator=generator) + label,
        edge_index=torch.stack([torch.cat([source, target]), torch.cat([target, source])]),
        edge_attr=torch.rand(2 * nodes, 1, generator=generator),
        y=torch.tensor([label]),
    )


def split(count: int, offset: int = 0) -> GraphSplit:
    graphs = PackedGraphs.pack([ring(3 + (i + offset) % 5, i % 2) for i in range(count)], labels="graph")
    return GraphSplit(graphs=graphs, indices=torch.arange(count))


def numbers(results: list[EpochResult]) -> list[tuple[object, ...]]:
    """All of a result but the time it took."""
    return [(r.epoch, r.learning_rate, r.train, r.validation, r.status, r.reason) for r in results]


def through_a_file(checkpoint: dict[str, object]) -> dict[str, object]:
    buffer = io.BytesIO()
    torch.save(checkpoint, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=True)


@pytest.mark.parametrize("stop_after", [1, 3, 5])
def test_interrupted_equals_uninterrupted_bit_for_bit(stop_after: int) -> None:
    train, validation = split(12), split(6, offset=2)
    whole = list(fit(CONFIG, train, validation))
    first, checkpoint = [], None
    for result in fit(CONFIG, train, validation):
        first.append(result)
        if result.epoch == stop_after:
            checkpoint = through_a_file(result.checkpoint())
            break
    rest = list(fit(CONFIG, train, validation, checkpoint=checkpoint))
    assert numbers(first + rest) == numbers(whole)
    ended, resumed = whole[-1].checkpoint()["network"], rest[-1].checkpoint()["network"]
    assert all(torch.equal(ended[name], resumed[name]) for name in ended)


def test_a_checkpoint_that_is_kept_stays_that_of_its_epoch() -> None:
    """While the run goes on, and while other runs go on from it."""
    train, validation = split(12), split(6, offset=2)
    kept = [(result.validation, result.checkpoint()) for result in fit(CONFIG, train, validation)]
    for told, checkpoint in kept:
        assert evaluate(load_network(CONFIG, checkpoint), CONFIG, validation, "cpu") == told
    _, of_second = kept[1]
    first, again = (numbers(list(fit(CONFIG, train, validation, checkpoint=of_second))) for _ in range(2))
    assert len(first) == 4
    assert first == again


class Dropping(torch.nn.Module):
    """A layer of one's own that draws in training."""

    def __init__(self, row_dim: int) -> None:
        super().__init__()
        self.map = torch.nn.Linear(row_dim, row_dim)
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, h: torch.Tensor, edge_index: torch.Tensor, beta_hat: torch.Tensor | None = None) -> torch.Tensor:
        messages: torch.Tensor = self.dropout(self.map(h)).index_select(0, edge_index[0])
        messages = messages if beta_hat is None else messages * beta_hat.unsqueeze(1)
        return h.index_add(0, edge_index[1], messages)


def test_what_a_layer_draws_follows_from_seed_and_epoch() -> None:
    """Not from what the process has drawn before, nor from an interruption."""
    config = replace(CONFIG, model=replace(MODEL, backbone=f"{__name__}:Dropping"))
    train, validation = split(12), split(6, offset=2)
    expected = list(fit(config, train, validation))
    torch.manual_seed(7)
    again = fit(config, train, validation)
    first = next(again)
    drawn_outside = torch.rand(3)
    torch.manual_seed(7)
    assert torch.equal(torch.rand(3), drawn_outside)
    assert numbers([first]) == numbers(expected[:1])
    rest = fit(config, train, validation, checkpoint=through_a_file(first.checkpoint()))
    assert numbers(list(rest)) == numbers(expected[1:])
    assert numbers(list(fit(replace(config, seed=95), train, validation))) != numbers(expected)


def test_an_ended_checkpoint_yields_nothing() -> None:
    train, validation = split(8), split(4)
    *_, last = fit(CONFIG, train, validation)
    assert (last.status, last.reason, last.epoch) == ("finished", "max_epochs", 6)
    assert list(fit(CONFIG, train, validation, checkpoint=last.checkpoint())) == []


def test_seed_decides_weights_and_order() -> None:
    train, validation = split(8), split(4)
    again = [numbers(list(fit(CONFIG, train, validation))) for _ in range(2)]
    other = numbers(list(fit(replace(CONFIG, seed=95), train, validation)))
    assert again[0] == again[1]
    assert again[0] != other


def test_training_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    next(fit(CONFIG, split(4), split(4)))
    assert torch.equal(torch.rand(3), expected)


def test_schedule_stops_below_min_lr() -> None:
    # At such a rate the weights hardly move: once batch normalisation has seen enough, an epoch is not better by one
    # part in ten thousand, and with patience 0 each such epoch halves the rate: to 5e-7, then below min_lr.
    train_config = replace(TRAIN, max_epochs=200, learning_rate=1e-6, min_lr=4e-7, lr_patience=0)
    results = list(fit(replace(CONFIG, train=train_config), split(8), split(4)))
    assert (results[-1].status, results[-1].reason) == ("finished", "min_lr")
    rates = [result.learning_rate for result in results]
    assert sorted(rates, reverse=True) == rates
    assert set(rates) == {1e-6, 5e-7}
    assert len(results) < 200


def test_time_limit_is_on_record() -> None:
    limited = replace(CONFIG, train=replace(TRAIN, time_limit_s=1e-9))
    results = list(fit(limited, split(4), split(4)))
    assert [(result.epoch, result.status, result.reason) for result in results] == [(1, "finished", "time_limit")]


def test_an_unsupervised_loss_that_is_no_number_ends_a_run_too() -> None:
    # A node without neighbours, whose row no node of the last layer sees: its assignment alone is no number.
    model = replace(MODEL, backbone="gat", heads=2, hidden_dim=4, placement=(1,), gate="uniform", out_dim=6)
    lonely = Data(
        x=torch.cat([torch.rand(3, 3), torch.full((1, 3), torch.nan)]),
        edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]),
        edge_attr=torch.rand(3, 1),
        y=torch.tensor([0]),
    )
    validation = GraphSplit(PackedGraphs.pack([lonely], labels="graph"), torch.arange(1))
    results = list(fit(replace(CONFIG, model=model), split(8), validation))
    assert [(r.status, r.reason) for r in results] == [("diverged", "epoch 1: unsupervised loss nan in evaluation")]


def test_a_diverged_run_ends_at_once_with_its_cause() -> None:
    train = split(8)
    train.graphs.x[5] = float("nan")
    results = list(fit(CONFIG, train, split(4)))
    assert len(results) == 1
    assert (results[0].status, results[0].epoch) == ("diverged", 1)
    assert results[0].reason == "epoch 1: loss nan in training"
    assert results[0].train is None


def test_a_run_that_diverges_on_validation_only_says_so() -> None:
    validation = split(4)
    validation.graphs.x[2] = float("inf")
    (result,) = fit(CONFIG, split(8), validation)
    assert result.status == "diverged"
    assert result.reason is not None
    assert "in evaluation" in result.reason


def test_evaluate_is_a_mean_over_graphs_whatever_the_batch_size() -> None:
    train, validation = split(8), split(7, offset=1)
    *_, last = fit(CONFIG, train, validation)
    network = load_network(CONFIG, last.checkpoint())
    whole = evaluate(network, replace(CONFIG, train=replace(TRAIN, batch_size=7)), validation, "cpu")
    parts = evaluate(network, replace(CONFIG, train=replace(TRAIN, batch_size=2)), validation, "cpu")
    assert last.validation is not None
    assert parts.loss == pytest.approx(whole.loss, rel=1e-5)
    assert parts.unsupervised_loss == pytest.approx(whole.unsupervised_loss, rel=1e-5)
    assert parts.metric == whole.metric == last.validation.metric
    assert parts.gate is not None
    assert whole.gate is not None
    assert parts.gate.std == pytest.approx(whole.gate.std, rel=1e-4)


def test_the_unsupervised_weight_moves_the_gate_network_only_through_the_loss() -> None:
    train, validation = split(8), split(4)
    without = replace(CONFIG, train=replace(TRAIN, unsupervised_weight=0.0, max_epochs=2))
    uniform = replace(without, model=replace(MODEL, gate="uniform"))
    *_, last = fit(uniform, train, validation)
    before = next(fit(replace(uniform, train=replace(without.train, learning_rate=1e-5)), train, validation))
    gate_names = [name for name in last.checkpoint()["network"] if "gate" in name]
    assert gate_names
    # With weight 0 and a uniform gate nothing teaches the gate's own parameters: Adam must leave them as they began.
    for name in gate_names:
        assert torch.equal(last.checkpoint()["network"][name], before.checkpoint()["network"][name])


def test_a_foreign_checkpoint_is_refused() -> None:
    result = next(fit(CONFIG, split(4), split(4)))
    with pytest.raises(CheckpointError, match="another configuration"):
        next(fit(replace(CONFIG, seed=95), split(4), split(4), checkpoint=result.checkpoint()))
    with pytest.raises(CheckpointError, match="found format 0, expected 1"):
        load_network(CONFIG, {**result.checkpoint(), "format": 0})


def test_evaluate_raises_on_a_loss_that_is_not_a_number() -> None:
    result = next(fit(CONFIG, split(4), split(4)))
    network = load_network(CONFIG, result.checkpoint())
    broken = split(4)
    broken.graphs.x[0] = float("nan")
    with pytest.raises(DivergedError, match="loss nan in evaluation"):
        evaluate(network, CONFIG, broken, "cpu")


def test_a_split_without_graphs_is_named() -> None:
    some, none = split(4), split(4)
    none = replace(none, indices=none.indices[:0])
    network = Network(CONFIG.model, task_of("digits"))
    with pytest.raises(DataError, match=r"^digits: found no graphs in the split to evaluate on, expected"):
        evaluate(network, CONFIG, none, "cpu")
    with pytest.raises(DataError, match=r"^digits: found no graphs in split 'val', expected at least one$"):
        next(fit(CONFIG, some, none))
    with pytest.raises(DataError, match=r"^digits: found no graphs in split 'train', expected at least one$"):
        next(fit(CONFIG, none, some))
    seeds = [SeedRun(config=replace(CONFIG, seed=seed), train=some, validation=none) for seed in (1, 2)]
    with pytest.raises(DataError, match="found no graphs in split 'val'"):
        next(fit_together(seeds))


def first_gradient(clip_norm: float | None) -> dict[str, torch.Tensor]:
    """The gradient of the first step, by number of the parameter: Adam's first moment is then a tenth of it."""
    train_config = replace(TRAIN, max_epochs=1, batch_size=8, clip_norm=clip_norm)
    result = next(fit(replace(CONFIG, train=train_config), split(8), split(4)))
    moments = result.checkpoint()["optimizer"]["state"]
    return {str(number): state["exp_avg"] / 0.1 for number, state in moments.items()}


def test_clipping_scales_gradients_down_to_the_norm() -> None:
    free, clipped, loose = first_gradient(None), first_gradient(1e-3), first_gradient(1e6)
    norm = sum(float(value.square().sum()) for value in free.values()) ** 0.5
    assert norm > 1e-2
    assert sum(float(value.square().sum()) for value in clipped.values()) ** 0.5 == pytest.approx(1e-3, rel=1e-3)
    for name, value in free.items():
        assert torch.allclose(clipped[name], value * 1e-3 / norm, rtol=1e-3, atol=1e-9)
        assert torch.equal(loose[name], value)


def test_mean_of_the_batches_values() -> None:
    config = replace(CONFIG, train=replace(TRAIN, batch_size=4, reduction="batch"))
    validation = split(6)  # a batch of four and one of two
    *_, last = fit(config, split(8), validation)
    network = load_network(config, last.checkpoint()).eval()
    losses, unsupervised, accuracies = [], [], []
    with torch.no_grad():
        for batch in validation.batches(4):
            output = network(batch)
            losses.append(supervised_loss("graph_classification", output.scores, batch.y).item())
            unsupervised.append(output.unsupervised_loss.item())
            accuracies.append((output.scores.argmax(1) == batch.y).double().mean().item())
    found = evaluate(network, config, validation, "cpu")
    assert found.loss == pytest.approx(sum(losses) / 2)
    assert found.unsupervised_loss == pytest.approx(sum(unsupervised) / 2)
    assert found.metric == pytest.approx(sum(accuracies) / 2)


@pytest.mark.parametrize(("watched", "halves"), [("supervised", True), ("total", False)])
def test_the_watched_loss_decides_the_schedule(monkeypatch: pytest.MonkeyPatch, watched: str, halves: bool) -> None:
    # The supervised loss rests while the unsupervised one falls.
    falling = iter(range(100, 0, -1))

    def scripted(*_: object) -> Evaluation:
        return Evaluation(loss=1.0, unsupervised_loss=float(next(falling)), metric=0.5, gate=None)

    monkeypatch.setattr("bimp.engine.evaluate", scripted)
    train_config = replace(TRAIN, max_epochs=4, lr_patience=0, validation_loss=watched, unsupervised_weight=0.5)
    rates = [result.learning_rate for result in fit(replace(CONFIG, train=train_config), split(4), split(4))]
    assert rates == ([1e-2, 1e-2, 5e-3, 2.5e-3] if halves else [1e-2] * 4)


def encoded(count: int) -> GraphSplit:
    graphs = split(count).graphs
    generator = torch.Generator().manual_seed(1)
    return GraphSplit(
        graphs=replace(graphs, pos_enc=torch.randn(graphs.x.shape[0], 3, generator=generator)),
        indices=torch.arange(count),
    )


def test_signs_are_flipped_in_training_and_not_in_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[bool, list[torch.Tensor]] = {True: [], False: []}
    forward = Network._node_rows

    def watch(network: Network, batch: GraphBatch) -> torch.Tensor:
        assert batch.pos_enc is not None
        seen[network.training].append(batch.pos_enc)
        return forward(network, batch)

    monkeypatch.setattr(Network, "_node_rows", watch)
    config = replace(CONFIG, model=replace(MODEL, pos_enc_dim=2), train=replace(TRAIN, max_epochs=4, batch_size=8))
    data = encoded(8)
    runs = [numbers(list(fit(config, data, data))) for _ in range(2)]
    assert runs[0] == runs[1]
    stored = data.graphs.pos_enc
    assert stored is not None
    assert all(torch.equal(found, stored) for found in seen[False])
    signs = set()
    for found in seen[True]:
        ratios = found.sort(0).values.sum(0) / stored.sum(0)
        assert torch.allclose(ratios.abs(), torch.ones(3), atol=1e-4)
        signs.add(tuple(ratios.sign().tolist()))
    assert len(signs) > 1


def test_encodings_that_the_network_does_not_read_change_no_number() -> None:
    """A dataset prepared with more of them keeps its fingerprint, and its trials their keys."""
    config = replace(CONFIG, model=replace(MODEL, pos_enc_dim=2), train=replace(TRAIN, max_epochs=3))
    more = encoded(12)
    assert more.graphs.pos_enc is not None
    few = replace(more, graphs=replace(more.graphs, pos_enc=more.graphs.pos_enc[:, :2].contiguous()))
    assert numbers(list(fit(config, more, more))) == numbers(list(fit(config, few, few)))


def test_encodings_of_the_first_columns_are_added_to_the_embedding() -> None:
    torch.manual_seed(0)
    network = Network(replace(MODEL, pos_enc_dim=2), task_of("digits")).eval()
    batch = next(encoded(3).batches(3))
    assert batch.pos_enc is not None
    rows = network._node_rows(batch)
    embedding, encoding = network.node_embedding, network.pos_enc_embedding
    expected = batch.x @ embedding.weight.t() + embedding.bias
    expected = expected + batch.pos_enc[:, :2] @ encoding.weight.t() + encoding.bias
    assert torch.allclose(rows, expected, atol=1e-6)
    with pytest.raises(ValueError, match="found 0 positional encodings, expected 2 or more; prepare digits"):
        network(replace(batch, pos_enc=None))
    with pytest.raises(ValueError, match="found 1 positional encodings, expected 2 or more"):
        network(replace(batch, pos_enc=batch.pos_enc[:, :1]))
