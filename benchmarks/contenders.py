"""What is timed on one dataset: loading, training steps and evaluation, ours and the usual way, on the same graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from benchmarks.graphs import Workload
from benchmarks.measure import Timings, interleave
from benchmarks.products import products_of
from benchmarks.usual_way import UsualNetwork, renamed, separate_graphs
from bimp.budget import solve_hidden_dim
from bimp.config import BACKBONES, GAT_HEADS, Backbone, ModelConfig, TrainConfig, TrialConfig
from bimp.data import GraphBatch, GraphSplit
from bimp.descent import AdamUpdate, descend, gradients
from bimp.evaluation import batches_read_by, evaluate
from bimp.losses import supervised_loss
from bimp.network import Network
from bimp.tasks import task_of

BUDGETS = {4: 100_000, 16: 500_000}
"""Layers, and the parameters within which a network of them is as wide as it can be."""
NUM_CLUSTERS = 8
SIGMA_M = 1.0
UNSUPERVISED_WEIGHT = 0.1
SEED = 0
GRAPHS_COMPARED = 4
"""Graphs on which both ways must agree before they are timed."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """The timings of one backbone at one depth, all from the same turns.

    Attributes:
        workload: the graphs.
        backbone, layers, hidden_dim: of the network, gated and not.
        vanilla, boosting, usual: a training step on a batch that is there already.
        products: the products of matrices of a vanilla step on the first batch, and nothing else.
        evaluation: gathering and evaluating a batch by the network with boosting.
        gather: a batch out of packed graphs in random order, straight after a vanilla step as in training, with what
            the backbone reads of it.
        collate: a batch by PyTorch Geometric.
    """

    workload: Workload
    backbone: Backbone
    layers: int
    hidden_dim: int
    vanilla: Timings
    boosting: Timings
    usual: Timings
    products: Timings
    evaluation: Timings
    gather: Timings
    collate: Timings


def trial_config(workload: Workload, backbone: Backbone, layers: int, *, gated: bool) -> TrialConfig:
    """A trial of ``layers`` layers; with a gate it is as wide as without, so that the gate alone is the difference."""
    task = workload.task
    vanilla = solve_hidden_dim(
        ModelConfig(
            backbone=backbone,
            layers=layers,
            hidden_dim=1,
            heads=GAT_HEADS if backbone == "gat" else 1,
            placement="none",
        ),
        task,
        BUDGETS[layers],
    )
    boosting = replace(vanilla, placement="boosting", gate="bilateral", num_clusters=NUM_CLUSTERS, sigma_m=SIGMA_M)
    return TrialConfig(
        dataset=task.dataset,
        model=boosting if gated else vanilla,
        train=TrainConfig(
            max_epochs=1,
            batch_size=workload.batch_size,
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
    """What follows the loss in a training step as it is usually written.

    Raises:
        ArithmeticError: the loss is not finite.
    """
    require_finite(loss)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()


def require_finite(loss: Tensor) -> None:
    """Look at the loss, as a training run does before its step.

    Raises:
        ArithmeticError: it is not finite.
    """
    if not torch.isfinite(loss):
        raise ArithmeticError(f"loss: found {loss.item()}, expected a finite number")


def time_cells(workload: Workload, layers: int, turns: int) -> list[Cell]:
    """Time everything about networks of ``layers`` layers on the batches of ``workload``.

    Raises:
        AssertionError: the two ways disagree in a batch, a loss or a gradient.
    """
    picks = workload.picks()
    batches = [workload.graphs.gather(pick) for pick in picks]
    separate = [separate_graphs(workload.graphs, pick) for pick in picks]
    usual_batches = [Batch.from_data_list(graphs) for graphs in separate]
    contenders: dict[str, Callable[[int], object]] = {
        "collate": lambda turn: Batch.from_data_list(separate[turn % len(separate)]),
    }
    widths, at_once = {}, _all_graphs(workload).batches_at_once(workload.batch_size)
    for backbone in BACKBONES:
        vanilla = trial_config(workload, backbone, layers, gated=False)
        boosting = trial_config(workload, backbone, layers, gated=True)
        widths[backbone] = vanilla.model.hidden_dim
        require_agreement(vanilla, workload, picks[0][:GRAPHS_COMPARED])
        contenders[f"vanilla {backbone}"] = our_step(vanilla, batches)
        # Right after the step, as in training: what it leaves in the cache counts.
        contenders[f"loading {backbone}"] = _loading(vanilla, workload, at_once)
        contenders[f"boosting {backbone}"] = our_step(boosting, batches)
        contenders[f"usual {backbone}"] = usual_step(vanilla, usual_batches)
        contenders[f"evaluation {backbone}"] = _evaluation(boosting, workload)
        contenders[f"products {backbone}"] = products_of(our_step(vanilla, batches))
    timings = interleave(contenders, turns)
    return [
        Cell(
            workload=workload,
            backbone=backbone,
            layers=layers,
            hidden_dim=widths[backbone],
            vanilla=timings[f"vanilla {backbone}"],
            boosting=timings[f"boosting {backbone}"],
            usual=timings[f"usual {backbone}"],
            products=timings[f"products {backbone}"],
            evaluation=timings[f"evaluation {backbone}"],
            gather=timings[f"loading {backbone}"].over(at_once),
            collate=timings["collate"],
        )
        for backbone in BACKBONES
    ]


def our_step(config: TrialConfig, batches: list[GraphBatch]) -> Callable[[int], object]:
    """A training step of ours on a batch whose edges nothing is known of yet."""
    network = build_network(config)
    update = AdamUpdate(_optimizer(network))

    def step(turn: int) -> None:
        # A copy: orders of the edges that an earlier turn found out are found out anew, as for the batches of an epoch.
        loss = our_loss(network, replace(batches[turn % len(batches)]))
        require_finite(loss)
        descend(update, None, gradients(loss, update.parameters))

    return step


def usual_step(config: TrialConfig, batches: list[Batch]) -> Callable[[int], object]:
    """The same step the usual way."""
    network = UsualNetwork(build_network(config))
    optimizer = _optimizer(network, fused=False)
    kind = task_of(config.dataset).kind

    def step(turn: int) -> None:
        batch = batches[turn % len(batches)]
        training_step(supervised_loss(kind, network(batch), batch.y), optimizer)

    return step


def _optimizer(network: nn.Module, *, fused: bool = True) -> torch.optim.Adam:
    network.train()
    return torch.optim.Adam(network.parameters(), lr=1e-3, fused=fused)


def _all_graphs(workload: Workload) -> GraphSplit:
    return GraphSplit(workload.graphs, torch.arange(len(workload.graphs)))


def _loading(config: TrialConfig, workload: Workload, batches: int) -> Callable[[int], object]:
    """The next so many batches of a training run."""
    split = _all_graphs(workload)

    def epochs() -> Iterator[GraphBatch]:
        for epoch in count():
            yield from batches_read_by(config, split, torch.randperm(len(split), generator=_generator(epoch)))

    coming = epochs()
    return lambda turn: [next(coming) for _ in range(batches)]


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _evaluation(config: TrialConfig, workload: Workload) -> Callable[[int], object]:
    network, picks = build_network(config), workload.picks()
    return lambda turn: evaluate(network, config, GraphSplit(workload.graphs, picks[turn % len(picks)]), "cpu")


def require_agreement(config: TrialConfig, workload: Workload, pick: Tensor) -> None:
    """Same batch, same loss and same gradient of every parameter, or the comparison means nothing.

    In double precision, so that no maximum is taken of another neighbour for a difference in the last digit.

    Raises:
        AssertionError: the two ways differ.
    """
    batch = workload.graphs.gather(pick)
    usual_batch = Batch.from_data_list(separate_graphs(workload.graphs, pick))
    assert torch.equal(batch.x, usual_batch.x), f"{workload.name}: the two batches differ in x"
    assert torch.equal(batch.edge_index, usual_batch.edge_index), f"{workload.name}: edges differ"
    edge_attr = None if batch.edge_attr is None else _doubled(batch.edge_attr)
    batch = replace(batch, x=_doubled(batch.x), edge_attr=edge_attr, y=_doubled(batch.y))
    usual_batch.x, usual_batch.edge_attr, usual_batch.y = batch.x, edge_attr, batch.y
    ours = build_network(config).double()
    usual = UsualNetwork(ours).double()
    loss = our_loss(ours, batch)
    usual_loss = supervised_loss(ours.task.kind, usual(usual_batch), batch.y)
    torch.testing.assert_close(usual_loss, loss, rtol=1e-8, atol=1e-8)
    loss.backward()  # type: ignore[no-untyped-call]
    usual_loss.backward()  # type: ignore[no-untyped-call]
    gradients = {name: parameter.grad for name, parameter in usual.named_parameters()}
    for name, parameter in ours.named_parameters():
        # Ours leave out gradients that are 0, of which rounding leaves theirs a rest.
        found = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        torch.testing.assert_close(
            gradients[renamed(name)],
            found,
            rtol=1e-6,
            atol=1e-7,
            msg=f"{workload.name}: {config.model.backbone}: the two ways differ in the gradient of {name}",
        )


def _doubled(values: Tensor) -> Tensor:
    return values.double() if values.is_floating_point() else values
