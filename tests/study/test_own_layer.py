"""A backbone that a study names by import path: from its file through the plan into training."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GINEConv, MessagePassing

from bimp import gated_convolution
from bimp.budget import parameters_of
from bimp.config import ConfigError, ModelConfig, TrainConfig, TrialConfig
from bimp.data import GraphSplit, PackedGraphs
from bimp.engine import fit
from bimp.layers.own import import_layer, own_layer
from bimp.network import Network
from bimp.tasks import task_of
from study.assignment import TrialAssignment
from study.growing_record import initial_record
from study.plan import plan, plan_document
from study.records import read_record
from study.results import FIRST_ATTEMPT, ResultsFolder
from study.spec import SpecError, read_study
from study.tracking.names import PlannedCell, cell_names
from study.worker import run_assignment

ROOT = Path(__file__).parent.parent.parent


class Doubling(nn.Module):
    """Two linear maps, one over the gated sum of the neighbours: 2 (d^2 + d) parameters where all rows are d wide."""

    def __init__(self, row_dim: int) -> None:
        super().__init__()
        self.own = nn.Linear(row_dim, row_dim)
        self.neighbours = nn.Linear(row_dim, row_dim)

    def forward(self, h: Tensor, edge_index: Tensor, beta_hat: Tensor | None = None) -> Tensor:
        source, destination = edge_index
        messages = h[source] if beta_hat is None else beta_hat.unsqueeze(1) * h[source]
        summed = torch.zeros_like(h).index_add(0, destination, messages)
        return torch.relu(self.own(h) + self.neighbours(summed))


class ByName(Doubling):
    """Takes beta_hat by its name alone."""

    def forward(self, h: Tensor, edge_index: Tensor, *, beta_hat: Tensor | None = None) -> Tensor:
        return super().forward(h, edge_index, beta_hat)


class Wrapped(nn.Module):
    """A convolution of PyTorch Geometric as a layer of a study, its last width free."""

    def __init__(self, row_dim: int, out_dim: int) -> None:
        super().__init__()
        self.conv: MessagePassing = GINEConv(nn.Linear(row_dim, out_dim), edge_dim=1)

    def forward(self, h: Tensor, edge_index: Tensor, beta_hat: Tensor | None = None) -> Tensor:
        ones = h.new_ones(edge_index.shape[1], 1)
        return gated_convolution(self.conv, h, edge_index, beta_hat, edge_attr=ones).tanh()


class NoGate(nn.Module):
    def forward(self, h: Tensor, edge_index: Tensor) -> Tensor:
        return h


class NoWidth(nn.Module):
    def __init__(self) -> None:
        super().__init__()

    def forward(self, h: Tensor, edge_index: Tensor, beta_hat: Tensor | None = None) -> Tensor:
        return h


class EvenOnly(NoWidth):
    def __init__(self, row_dim: int) -> None:
        super().__init__()
        raise ValueError("odd width")


class Misspelt(NoWidth):
    def __init__(self, row_dim: int) -> None:
        super().__init__()
        self.own = nn.Linaer(row_dim, row_dim)  # type: ignore[attr-defined]


class WithoutSuper(NoWidth):
    def __init__(self, row_dim: int) -> None:
        pass


class Gathering(Doubling):
    """Takes whatever else it is given."""

    def forward(
        self, h: Tensor, edge_index: Tensor, beta_hat: Tensor | None = None, *args: object, **kwargs: object
    ) -> Tensor:
        return super().forward(h, edge_index, beta_hat)


class Narrow(NoWidth):
    def __init__(self, row_dim: int) -> None:
        super().__init__()

    def forward(self, h: Tensor, edge_index: Tensor, beta_hat: Tensor | None = None) -> Tensor:
        return h[:, 1:]


class OfFlatEdges(Narrow):
    def forward(self, h: Tensor, edge_index: Tensor, beta_hat: Tensor | None = None) -> Tensor:
        source, destination = edge_index.view(-1).chunk(2)
        return torch.zeros_like(h).index_add(0, destination, h[source])


NOT_A_LAYER = 3
PATH = f"{__name__}:Doubling"
STUDY = f"""\
name: own
arms:
  dataset: digits
  backbone: [gcn, {PATH}]
  placement: [none, boosting]
  gate: [bilateral, uniform]
  budget: 10000
  layers: 3
space:
  sigma_m: {{log_uniform: [0.1, 10]}}
fixed: {{max_epochs: 2, num_clusters: 5}}
search: {{trials: 2}}
"""


def params(width: int, clusters: int | None) -> int:
    """Three such layers on digits (3 inputs, 10 classes), the second gated: counted from the layers' sizes."""
    half, quarter = width // 2, width // 4
    layers = 3 * 2 * (width * width + width)
    head = (width * half + half) + (half * quarter + quarter) + (quarter * 10 + 10)
    gate = 0 if clusters is None else (width + 1) * width + (width + 1) * clusters + clusters * clusters
    return (3 * width + width) + layers + head + gate


def test_budget_placement_and_control_arm_work_as_for_the_four() -> None:
    cells = [cell for cell in plan(read_study(STUDY)).cells if cell.backbone == PATH]
    name = PATH.replace(":", "_").replace(".", "_")
    assert [cell.id for cell in cells] == [
        f"digits-{name}-none-L3-10k",
        f"digits-{name}-boosting-L3-10k",
        f"digits-{name}-boosting-L3-10k-uniform",
    ]
    for cell, clusters in zip(cells, (None, 5, 5), strict=True):
        widest = max(width for width in range(4, 200) if params(width, clusters) <= 10_000)
        assert (cell.hidden_dim.single, cell.params.single) == (widest, params(widest, clusters))
    assert [[entry.key for entry in cell.space.parameters] for cell in cells] == [[], ["sigma_m"], []]


def test_the_class_names_the_layer_for_people_and_the_path_for_machines() -> None:
    document = plan_document(plan(read_study(STUDY)))
    names = PlannedCell.__dataclass_fields__
    cells = [PlannedCell(**{name: cell[name] for name in names if name in cell}) for cell in document["cells"]]
    assert {cell.backbone for cell in cells} == {"gcn", PATH}
    assert list(cell_names(cells).values())[3:] == [
        "Doubling Digits 10k",
        "bi-Doubling Digits 10k",
        "uniform-Doubling Digits 10k",
    ]


def model(backbone: str, **changed: object) -> ModelConfig:
    gated = {"placement": "boosting", "gate": "bilateral", "num_clusters": 3, "sigma_m": 1.0}
    return ModelConfig(**{"backbone": backbone, "layers": 2, "hidden_dim": 8, **gated, **changed})


def trial(backbone: str, **changed: object) -> TrialConfig:
    train = TrainConfig(max_epochs=2, batch_size=4, learning_rate=1e-2, unsupervised_weight=1.0)
    return TrialConfig(dataset="digits", model=model(backbone, **changed), train=train, seed=41)


def rings(count: int) -> GraphSplit:
    def ring(nodes: int, label: int) -> Data:
        source = torch.arange(nodes)
        target = (source + 1) % nodes
        edge_index = torch.stack([torch.cat([source, target]), torch.cat([target, source])])
        x = torch.rand(nodes, 3, generator=torch.Generator().manual_seed(nodes)) + label
        return Data(x=x, edge_index=edge_index, edge_attr=torch.ones(2 * nodes, 1), y=torch.tensor([label]))

    graphs = PackedGraphs.pack([ring(3 + i % 5, i % 2) for i in range(count)], labels="graph")
    return GraphSplit(graphs=graphs, indices=torch.arange(count))


@pytest.mark.parametrize(
    "backbone", [f"{__name__}:{layer}" for layer in ("Doubling", "ByName", "Wrapped", "Gathering")]
)
def test_two_epochs_train_the_layer_and_its_gate(backbone: str) -> None:
    config = TrialConfig.from_dict(trial(backbone).to_dict())
    first, last = fit(config, rings(12), rings(6))
    assert (last.epoch, last.reason) == (2, "max_epochs")
    assert first.train is not None
    assert last.validation is not None
    assert last.validation.gate is not None
    weights = last.checkpoint()["network"]
    fresh = fit(replace(config, seed=42), rings(12), rings(6))
    assert next(fresh).train != first.train
    assert any(name.startswith("gates.2.") for name in weights)
    uniform = [*fit(replace(config, model=replace(config.model, gate="uniform")), rings(12), rings(6))][-1]
    assert uniform.validation is not None
    assert uniform.validation.gate is not None
    assert uniform.validation.gate.minimum == pytest.approx(1)
    assert uniform.validation.gate.maximum == pytest.approx(1)
    assert last.validation.gate.maximum > 1 > last.validation.gate.minimum


def test_the_gated_layer_is_given_beta_hat() -> None:
    torch.manual_seed(3)
    network = Network(model(PATH, gate="uniform"), task_of("digits")).eval()
    batch = next(rings(6).batches(6))
    with torch.no_grad():
        rows = network(batch, keep_rows=True).rows
        ungated, gated = (layer for layer in network.layers)
        torch.testing.assert_close(rows[1], ungated(rows[0], batch.edge_index))
        # Every node of a ring has two neighbours.
        halves = torch.full((batch.num_edges,), 0.5)
        torch.testing.assert_close(rows[2], gated(rows[1], batch.edge_index, halves))
        assert not torch.allclose(rows[2], gated(rows[1], batch.edge_index))


def test_the_last_width_is_the_constructors_out_dim() -> None:
    assert own_layer(f"{__name__}:Wrapped", 8, 6).conv.nn.weight.shape == (6, 8)
    with pytest.raises(ConfigError, match=r"^out_dim: found 6 with layers 8 wide, expected 8: .* takes no out_dim$"):
        parameters_of(model(PATH, out_dim=6), task_of("digits"))


def test_edges_lie_in_one_piece_in_every_batch() -> None:
    network = Network(model(f"{__name__}:OfFlatEdges"), task_of("digits"))
    batches = list(rings(6).batches(2))
    assert not batches[1].edge_index.is_contiguous()  # parts of what was gathered at once
    for batch in batches:
        network(batch)


def test_rows_of_another_width_are_told_when_they_come() -> None:
    network = Network(model(f"{__name__}:Narrow"), task_of("digits"))
    with pytest.raises(ValueError, match=r"Narrow: layer 1 gave \[25, 7\], expected rows \[25, 8\]$"):
        network(next(rings(5).batches(5)))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("my lab:Conv", "found 'my lab:Conv', expected module:Class such as my_lab.layers:MyConv"),
        (
            "no_such_lab:Conv",
            "found 'no_such_lab:Conv', expected a module that can be imported here and on every node, from PYTHONPATH "
            "or installed (ModuleNotFoundError: No module named 'no_such_lab')",
        ),
        (
            f"{__name__}:Missing",
            f"found '{__name__}:Missing', expected a class that is a torch.nn.Module; {__name__} has nothing of that "
            "name",
        ),
        (
            f"{__name__}:NOT_A_LAYER",
            f"found '{__name__}:NOT_A_LAYER', expected a class that is a torch.nn.Module; {__name__} has something "
            "else",
        ),
        (
            f"{__name__}:NoGate",
            f"found '{__name__}:NoGate' with forward(h, edge_index), expected forward(h, edge_index, beta_hat=None)",
        ),
        (
            f"{__name__}:NoWidth",
            f"found '{__name__}:NoWidth' with the constructor NoWidth(), expected (row_dim) or (row_dim, out_dim)",
        ),
    ],
)
def test_a_bad_path_is_one_line_of_the_study_file(written: str, expected: str) -> None:
    text = STUDY.replace(f"[gcn, {PATH}]", f'"{written}"')
    with pytest.raises(SpecError) as caught:
        read_study(text, file="f.yaml")
    line = str(caught.value)
    assert line == f"f.yaml:4: arms.backbone: {expected}"


@pytest.mark.parametrize(
    ("layer", "cause"),
    [
        ("EvenOnly", "ValueError: odd width"),
        ("Misspelt", "AttributeError: module 'torch.nn' has no attribute 'Linaer'"),
        ("WithoutSuper", "AttributeError: 'WithoutSuper' object has no attribute '_parameters'"),
    ],
)
def test_a_layer_that_cannot_be_built_is_told_by_planning(layer: str, cause: str) -> None:
    with pytest.raises(SpecError) as caught:
        plan(read_study(STUDY.replace("Doubling", layer)))
    assert f"{layer}' that cannot be built 4 wide, expected any width ({cause})" in str(caught.value)


def test_a_script_that_ends_the_process_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bimp_test_script.py").write_text("import sys; sys.exit(2)")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match=r"^backbone: found 'bimp_test_script:Conv', expected .* \(SystemExit: 2\)$"):
        import_layer("bimp_test_script:Conv")


def test_what_a_layer_prints_does_not_stand_in_what_is_written_to_stdout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bimp_test_loud.py").write_text(
        "from torch import nn\n\nprint('imported')\n\n\nclass Conv(nn.Module):\n"
        "    def __init__(self, row_dim):\n        super().__init__()\n        print('built')\n"
        "    def forward(self, h, edge_index, beta_hat=None):\n        return h\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import_layer("bimp_test_loud:Conv")
    own_layer("bimp_test_loud:Conv", 4, 4)
    assert capsys.readouterr() == ("", "imported\nbuilt\n")


def test_a_configuration_that_is_read_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bimp_test_trap.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    config = TrialConfig.from_dict(trial("bimp_test_trap:Conv").to_dict())
    with pytest.raises(ConfigError, match=r"^backbone: .*expected bimp_test_trap to be imported first: nothing is"):
        Network(config.model, task_of("digits"))


def assignment(config: TrialConfig, results: Path) -> TrialAssignment:
    return TrialAssignment(
        key="k" * 20,
        study="own",
        cell="own",
        phase="search",
        number=0,
        chosen_from=None,
        config=config,
        budget=None,
        results=str(results),
        data_root=str(results),
        data_fingerprint="f",
        threads=1,
        use_gpu=False,
        git_commit=None,
        git_dirty=None,
    )


def test_the_record_names_the_path(tmp_path: Path) -> None:
    record = initial_record(assignment(trial(PATH), tmp_path), "cpu")
    assert (record.backbone, record.params) == (PATH, parameters_of(model(PATH), task_of("digits")))
    assert record.concatenated_row is None


def test_a_node_without_the_module_fails_the_trial_with_its_cause(tmp_path: Path) -> None:
    ResultsFolder(tmp_path).create()
    given = assignment(trial("no_such_lab:Conv"), tmp_path)
    run_assignment(given.to_dict())
    record = read_record(ResultsFolder(tmp_path).live_record(given.key, FIRST_ATTEMPT))
    assert record.status == "failed"
    assert record.reason is not None
    assert record.reason.startswith("ConfigError: backbone: found 'no_such_lab:Conv', expected a module that can be")


def test_a_worker_imports_what_the_study_file_names(tmp_path: Path) -> None:
    (tmp_path / "bimp_test_lab.py").write_text(
        "from torch import nn\n\n\nclass Conv(nn.Module):\n"
        "    def __init__(self, row_dim):\n        super().__init__()\n"
        "    def forward(self, h, edge_index, beta_hat=None):\n        return h\n"
    )
    code = "from bimp.layers.own import import_layer, own_layer as o; import_layer('bimp_test_lab:Conv'); "
    code += "print(type(o('bimp_test_lab:Conv', 4, 4)).__name__)"
    path = os.pathsep.join([str(ROOT), str(tmp_path)])
    found = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "Conv"


def test_the_four_are_never_imported() -> None:
    import_layer("gcn")
