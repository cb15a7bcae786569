"""Networks of the released code with its own outputs, in float64.

The files are not part of this project: BIMP_RELEASED_CASES names the folder that holds them. Each ``.pt`` there has
``meta`` (dataset, model, bilateral, net_params), ``graph``, ``inputs``, ``state_dict`` and what the released code made
of them: ``eval`` and ``train`` (scores, losses, assignments, gradients, buffers) and ``adam`` (five steps).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from bimp.config import TrialConfig
from bimp.data.batch import GraphBatch
from bimp.losses import supervised_loss
from bimp.network import Network, NetworkOutput
from bimp.released import load_config, load_network

FOLDER = os.environ.get("BIMP_RELEASED_CASES")
PATHS = sorted(Path(FOLDER).glob("*.pt")) if FOLDER else []
pytestmark = pytest.mark.skipif(not PATHS, reason="BIMP_RELEASED_CASES names no folder of sample cases")
EXACT = {"rtol": 0.0, "atol": 1e-10}
TRAINED = {"rtol": 0.0, "atol": 1e-9}
"""After steps of Adam, which makes steps even of a gradient that is rounding, as that of a bias before a norm is."""


@dataclass(frozen=True)
class Case:
    content: dict[str, Any]
    config: TrialConfig
    batch: GraphBatch
    order: Tensor

    def network(self, state_dict: dict[str, Tensor] | None = None) -> Network:
        return load_network(self.content["state_dict"] if state_dict is None else state_dict, self.config)

    def losses(self, network: Network) -> tuple[NetworkOutput, Tensor, Tensor]:
        output = network(self.batch)
        supervised = supervised_loss(network.task.kind, output.scores, self.batch.y)
        unsupervised = output.unsupervised_loss
        return output, supervised, torch.zeros_like(supervised) if unsupervised is None else unsupervised

    def ordered(self, values: Tensor, kind: str) -> Tensor:
        """The case's values of graphs, nodes or edges in the order of ours."""
        if kind == "graph_regression":
            return values.squeeze(-1)
        return values[self.order] if kind == "edge_classification" else values


@pytest.fixture(params=PATHS, ids=[path.stem for path in PATHS])
def case(request: pytest.FixtureRequest) -> Case:
    content = torch.load(request.param, weights_only=True)
    meta, graph, inputs = content["meta"], content["graph"], content["inputs"]
    suffix = {"IL": "_IL", "ALL": "_ALL"}.get(str(meta.get("variant", "")).upper(), "")
    name = f"bi{meta['model']}{suffix}" if meta["bilateral"] else meta["model"]
    config = load_config({"model": name, "dataset": meta["dataset"], "net_params": meta["net_params"]})
    order = graph["edge_index"][1].argsort(stable=True)
    blank = Case(content, config, None, order)  # type: ignore[arg-type]
    kind = load_network(content["state_dict"], config).task.kind
    batch = GraphBatch(
        x=inputs["x"],
        edge_index=graph["edge_index"][:, order],
        edge_attr=None if inputs["e"] is None else inputs["e"][order],
        y=blank.ordered(inputs["y"], kind),
        batch=graph["batch"],
        ptr=torch.cat([torch.zeros(1, dtype=torch.long), graph["num_nodes_per_graph"].cumsum(0)]),
        pos_enc=inputs["pos_enc"],
    )
    return Case(content, config, batch, order)


def test_no_departures(case: Case) -> None:
    assert case.config.departures == {}
    assert case.network().model == case.config.model


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_scores_losses_and_gradients(case: Case, mode: str) -> None:
    expected = case.content[mode]
    network = case.network().train(mode == "train")
    output, supervised, unsupervised = case.losses(network)
    (supervised + unsupervised).backward()

    assert_close(output.scores, case.ordered(expected["scores"], network.task.kind), **EXACT)
    assert_close(supervised, expected["sup_loss"], **EXACT)
    assert_close(unsupervised, torch.as_tensor(expected["unsup_loss"], dtype=torch.float64), **EXACT)
    assert_close(supervised + unsupervised, expected["total_loss"], **EXACT)
    if len(output.gates) == 1:
        assert_close(output.gates[0].soft_assignment, expected["S"], **EXACT)
        assert_close(output.gates[0].min_cut, expected["loss_mincut"], **EXACT)
        assert_close(output.gates[0].orthogonality, expected["loss_ortho"], **EXACT)

    # Gradients are laid out as the weights are: they are read by the same names.
    gradients = {
        name: torch.zeros_like(case.content["state_dict"][name]) if value is None else value
        for name, value in expected["grad_params"].items()
    }
    wanted = case.network({**case.content["state_dict"], **gradients})
    for (name, parameter), other in zip(network.named_parameters(), wanted.parameters(), strict=True):
        found = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        assert_close(found, other.detach(), **EXACT, msg=lambda text, name=name: f"{name}: {text}")


def test_buffers_after_a_training_step(case: Case) -> None:
    network = case.network().train()
    network(case.batch)
    wanted = case.network({**case.content["state_dict"], **case.content["train"]["buffers_after"]})
    for (name, buffer), other in zip(network.named_buffers(), wanted.buffers(), strict=True):
        assert_close(buffer, other, **EXACT, msg=lambda text, name=name: f"{name}: {text}")


def test_five_steps_of_adam(case: Case) -> None:
    expected = case.content["adam"]
    assert expected["clip_grad_norm"] == case.config.train.clip_norm
    network = case.network().train()
    optimizer = torch.optim.Adam(network.parameters(), lr=expected["lr"])
    found = []
    for _ in range(expected["losses"].shape[0]):
        _, supervised, unsupervised = case.losses(network)
        optimizer.zero_grad()
        (supervised + unsupervised).backward()
        if expected["clip_grad_norm"] is not None:
            torch.nn.utils.clip_grad_norm_(network.parameters(), expected["clip_grad_norm"])
        optimizer.step()
        found.append(torch.stack([supervised, unsupervised, supervised + unsupervised]).detach())
    assert_close(torch.stack(found), expected["losses"], **EXACT)
    wanted = case.network(expected["final_state_dict"])
    for (name, value), other in zip(network.state_dict().items(), wanted.state_dict().values(), strict=True):
        assert_close(value, other, **TRAINED, msg=lambda text, name=name: f"{name}: {text}")
