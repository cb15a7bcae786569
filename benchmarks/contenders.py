"""What is timed on one dataset: loading, training steps and evaluation, ours and the usual way, on the same graphs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from benchmarks.measure import Timings, interleave
from benchmarks.usual_way import UsualNetwork, renamed, separate_graphs
from bimp.budget import solve_hidden_dim
from bimp.config import BACKBONES, GAT_HEADS, Backbone, ModelConfig, TrainConfig, TrialConfig
from bimp.data import GraphBatch, GraphSplit, PreparedDataset
from bimp.engine import evaluate
from bimp.losses import supervised_loss
from bimp.network import Network
from bimp.tasks import TaskSpec, task_of

BUDGET = 100_000
LAYERS = 4
NUM_CLUSTERS = 8
SIGMA_M = 1.0
UNSUPERVISED_WEIGHT = 0.1
DIFFERENT_BATCHES = 4
SEED = 0


@dataclass(frozen=True, kw_only=True)
class DatasetTimings:
    """All timings of one dataset, all from the same turns.

    Attributes:
        dataset: title of the dataset.
        batch_size: graphs in a batch.
        nodes, edges: means over the batches.
        train_graphs, validation_graphs: sizes of the splits.
        widths: ``hidden_dim`` of each backbone, gated and not.
        gather, collate: a batch out of packed graphs, and by PyTorch Geometric.
        vanilla, boosting, usual: a training step on a batch that is there already.
        evaluation: gathering and evaluating a batch by a network with boosting.
    """

    dataset: str
    batch_size: int
    nodes: float
    edges: float
    train_graphs: int
    validation_graphs: int
    widths: dict[Backbone, int]
    gather: Timings
    collate: Timings
    vanilla: dict[Backbone, Timings]
    boosting: dict[Backbone, Timings]
    usual: dict[Backbone, Timings]
    evaluation: dict[Backbone, Timings]


def trial_config(task: TaskSpec, backbone: Backbone, *, gated: bool) -> TrialConfig:
    """A trial of ``LAYERS`` layers; with a gate it is as wide as without, so that the gate alone is the difference."""
    vanilla = solve_hidden_dim(
        ModelConfig(
            backbone=backbone,
            layers=LAYERS,
            hidden_dim=1,
            heads=GAT_HEADS if backbone == "gat" else 1,
            placement="none",
        ),
        task,
        BUDGET,
    )
    boosting = replace(vanilla, placement="boosting", gate="bilateral", num_clusters=NUM_CLUSTERS, sigma_m=SIGMA_M)
    return TrialConfig(
        dataset=task.dataset,
        model=boosting if gated else vanilla,
        train=TrainConfig(
            max_epochs=1,
            batch_size=task.protocol.batch_size,
            learning_rate=task.protocol.learning_rate,
            unsupervised_weight=UNSUPERVISED_WEIGHT if gated else None,
        ),
        seed=SEED,
    )


def build_network(config: TrialConfig) -> Network:
    """The network of ``config``, initialised from its seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return Network(config.model, task_of(config.dataset))


def our_loss(network: Network, batch: GraphBatch) -> Tensor:
    """What a step of ours descends on."""
    output = network(batch)
    loss = supervised_loss(network.task.kind, output.scores, batch.y)
    return loss if output.unsupervised_loss is None else loss + UNSUPERVISED_WEIGHT * output.unsupervised_loss


def training_step(loss: Tensor, optimizer: torch.optim.Optimizer) -> None:
    """What follows the loss in a training step, as the engine does it.

    Raises:
        ArithmeticError: the loss is not finite.
    """
    if not torch.isfinite(loss):
        raise ArithmeticError(f"loss: found {loss.item()}, expected a finite number")
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()


def time_dataset(dataset: PreparedDataset, turns: int) -> DatasetTimings:
    """Time everything on ``DIFFERENT_BATCHES`` random batches of the training split.

    Raises:
        AssertionError: the two ways disagree in a batch, a score or a gradient.
    """
    task = task_of(dataset.name)
    batch_size = task.protocol.batch_size
    train = dataset.split("train")
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(SEED))
    picks = [train.indices[part] for part in torch.split(order[: DIFFERENT_BATCHES * batch_size], batch_size)]
    batches = [dataset.graphs.gather(pick) for pick in picks]
    separate = [separate_graphs(dataset.graphs, pick) for pick in picks]
    usual_batches = [Batch.from_data_list(graphs) for graphs in separate]

    contenders: dict[str, Callable[[int], object]] = {
        "gather": lambda turn: dataset.graphs.gather(picks[turn % len(picks)]),
        "collate": lambda turn: Batch.from_data_list(separate[turn % len(separate)]),
    }
    for backbone in BACKBONES:
        vanilla = trial_config(task, backbone, gated=False)
        boosting = trial_config(task, backbone, gated=True)
        _require_agreement(build_network(vanilla), batches[0], usual_batches[0])
        contenders[f"vanilla {backbone}"] = _our_step(build_network(vanilla), batches)
        contenders[f"boosting {backbone}"] = _our_step(build_network(boosting), batches)
        contenders[f"usual {backbone}"] = _usual_step(UsualNetwork(build_network(vanilla)), task, usual_batches)
        contenders[f"evaluation {backbone}"] = _evaluation(boosting, dataset, picks)
    timings = interleave(contenders, turns)

    def of(role: str) -> dict[Backbone, Timings]:
        return {backbone: timings[f"{role} {backbone}"] for backbone in BACKBONES}

    return DatasetTimings(
        dataset=task.title,
        batch_size=batch_size,
        nodes=sum(batch.num_nodes for batch in batches) / len(batches),
        edges=sum(batch.num_edges for batch in batches) / len(batches),
        train_graphs=len(train),
        validation_graphs=len(dataset.split("val")),
        widths={backbone: trial_config(task, backbone, gated=False).model.hidden_dim for backbone in BACKBONES},
        gather=timings["gather"],
        collate=timings["collate"],
        vanilla=of("vanilla"),
        boosting=of("boosting"),
        usual=of("usual"),
        evaluation=of("evaluation"),
    )


def _optimizer(network: nn.Module) -> torch.optim.Optimizer:
    network.train()
    return torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)


def _our_step(network: Network, batches: list[GraphBatch]) -> Callable[[int], object]:
    optimizer = _optimizer(network)
    return lambda turn: training_step(our_loss(network, batches[turn % len(batches)]), optimizer)


def _usual_step(network: UsualNetwork, task: TaskSpec, batches: list[Batch]) -> Callable[[int], object]:
    optimizer = _optimizer(network)

    def step(turn: int) -> None:
        batch = batches[turn % len(batches)]
        training_step(supervised_loss(task.kind, network(batch), batch.y), optimizer)

    return step


def _evaluation(config: TrialConfig, dataset: PreparedDataset, picks: list[Tensor]) -> Callable[[int], object]:
    network = build_network(config)
    return lambda turn: evaluate(network, config, GraphSplit(dataset.graphs, picks[turn % len(picks)]), "cpu")


def _require_agreement(ours: Network, batch: GraphBatch, usual_batch: Batch) -> None:
    """Same batch, same loss and same gradient of every parameter, or the comparison means nothing."""
    usual = UsualNetwork(ours)
    assert torch.equal(batch.x, usual_batch.x), f"{ours.task.dataset}: the two batches differ in x"
    assert torch.equal(batch.edge_index, usual_batch.edge_index), f"{ours.task.dataset}: edges differ"
    loss = our_loss(ours, batch)
    usual_loss = supervised_loss(ours.task.kind, usual(usual_batch), usual_batch.y)
    torch.testing.assert_close(usual_loss, loss, rtol=1e-4, atol=1e-5)
    loss.backward()  # type: ignore[no-untyped-call]
    usual_loss.backward()  # type: ignore[no-untyped-call]
    gradients = {name: parameter.grad for name, parameter in usual.named_parameters()}
    for name, parameter in ours.named_parameters():
        torch.testing.assert_close(
            gradients[renamed(name)],
            parameter.grad,
            rtol=1e-3,
            atol=1e-4,
            msg=f"{ours.model.backbone}: the two ways differ in the gradient of {name}",
        )
