"""Which nodes are fit for a study, and what is said of those that are not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from study.cluster import ClusterError, Slots, cores_here, start_ray
from study.node_check import NodeError, NodeFound, NodeNeeds, differences, require_fit, told_differences
from study.provenance import library_versions
from study.run_options import RunOptions
from study.spec import ResourcesSpec, read_study

DRIVER = {"python": "3.11.7", "torch": "2.13.0", "torch-geometric": "2.8.1", "ray": "2.60.0", "optuna": "5.0.0"}


def node(cuda: bool = False, **changes: str) -> NodeFound:
    return NodeFound(versions={**DRIVER, **{name.replace("_", "-"): it for name, it in changes.items()}}, cuda=cuda)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, []),
        ({"python": "3.11.12"}, []),
        ({"python": "3.12.7"}, ["python 3.12.7, the driver has 3.11.7"]),
        ({"torch": "2.13.0+cu128"}, []),
        ({"torch": "2.12.1+cu128"}, ["torch 2.12.1+cu128, the driver has 2.13.0"]),
        (
            {"torch_geometric": "2.6.0", "ray": "2.50.0"},
            ["torch-geometric 2.6.0, the driver has 2.8.1", "ray 2.50.0, the driver has 2.60.0"],
        ),
        ({"optuna": "4.5.0"}, []),  # only the driver asks it
    ],
)
def test_differences_that_count(changes: dict[str, str], told: list[str]) -> None:
    assert differences(DRIVER, node(**changes).versions) == told


def test_a_library_that_a_node_has_not_is_missing_and_one_that_the_driver_has_not_is_not_compared() -> None:
    assert differences({"torch": "2.13.0"}, {}) == ["torch missing, the driver has 2.13.0"]
    assert differences({}, {"torch": "2.13.0"}) == []


def test_one_line_names_the_node_the_library_and_both_versions() -> None:
    needs = NodeNeeds(versions=DRIVER, cuda=False)
    require_fit(needs, {"10.0.0.3 (aaaa)": node(), "10.0.0.4 (bbbb)": node(python="3.11.9")})
    unfit = {"10.0.0.3 (aaaa)": node(), "10.0.0.4 (bbbb)": node(torch="2.12.0"), "10.0.0.5 (cccc)": node(ray="2.50.0")}
    with pytest.raises(NodeError) as caught:
        require_fit(needs, unfit)
    assert str(caught.value) == (
        "node 10.0.0.4 (bbbb) (1 more node is unfit): torch 2.12.0, the driver has 2.13.0; install the driver's "
        "versions there, or go on with --allow-version-differences"
    )


def test_a_gpu_that_torch_cannot_use_is_an_error_and_not_a_slow_trial() -> None:
    asks = NodeNeeds(versions={}, cuda=True)
    assert asks.unmet(node(cuda=True, torch="1.0")) is None
    unmet = asks.unmet(node())
    assert unmet is not None
    assert unmet.startswith("trials ask for a GPU, and its torch finds none; ")
    assert "resources.gpus_per_trial: 0" in unmet
    assert "--on-cpu" in unmet
    assert NodeNeeds(versions={}, cuda=False).unmet(node()) is None


def test_differences_that_are_allowed_are_told_once() -> None:
    found = {"a": node(torch="2.12.0"), "b": node(), "c": node(torch="2.12.0", ray="2.50.0")}
    assert told_differences(DRIVER, found) == [
        "2 nodes have torch 2.12.0, the driver has 2.13.0; allowed, and in the records",
        "1 node has ray 2.50.0, the driver has 2.60.0; allowed, and in the records",
    ]


def test_what_is_compared_is_known_here() -> None:
    assert {"python", "numpy", "torch", "torch-geometric", "ray", "pyarrow"} <= library_versions().keys()


def test_nodes_on_which_a_trial_fits_are_known_by_their_ids() -> None:
    nodes = [
        {"Alive": True, "NodeID": "head", "Resources": {}},
        {"Alive": True, "NodeID": "small", "Resources": {"CPU": 2.0}},
        {"Alive": True, "NodeID": "large", "Resources": {"CPU": 8.0, "GPU": 2.0}},
        {"Alive": False, "NodeID": "dead", "Resources": {"CPU": 8.0, "GPU": 2.0}},
    ]
    assert Slots.of(nodes, ResourcesSpec(cpus_per_trial=2)).nodes == {"small", "large"}
    assert Slots.of(nodes, ResourcesSpec(cpus_per_trial=2, gpus_per_trial=0.5)).nodes == {"large"}


@pytest.mark.parametrize(("counted", "allowed", "cores"), [(64, 4, 4), (2, 64, 2), (4, 4, 4)])
def test_a_local_ray_has_the_cores_of_its_container_that_this_process_may_run_on(
    monkeypatch: pytest.MonkeyPatch, counted: int, allowed: int, cores: int
) -> None:
    told: dict[str, object] = {}

    def refuse(address: str, **given: object) -> None:
        told.update(given, address=address)
        raise RuntimeError

    monkeypatch.setattr("ray._private.utils.get_num_cpus", lambda **_: float(counted))
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(allowed), raising=False)
    monkeypatch.setattr("study.cluster._connect", refuse)
    assert cores_here() == cores
    with pytest.raises(RuntimeError):
        start_ray(None, ResourcesSpec())
    assert told == {"address": "local", "num_cpus": cores}


def test_another_ray_than_the_cluster_s_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("Version mismatch: The cluster was started with:\n    Ray: 2.50.0\n    Python: 3.11.7\n")

    monkeypatch.setattr("study.cluster._connect", refuse)
    with pytest.raises(ClusterError) as caught:
        start_ray("auto", ResourcesSpec())
    assert str(caught.value) == (
        "--address auto: the cluster has another Ray or Python than this driver; install the same on both "
        "(Version mismatch: The cluster was started with: Ray: 2.50.0 Python: 3.11.7)"
    )


@pytest.mark.parametrize(
    ("address", "any_version", "gpus", "on_cpu", "compared", "cuda"),
    [
        (None, False, "1", False, False, True),  # a local Ray has the driver's libraries
        ("auto", False, "0", False, True, False),
        ("auto", True, "0", False, False, False),
        ("auto", False, "0.25", False, True, True),
        ("auto", False, "auto", False, True, False),  # until a probe has decided it
        ("auto", False, "1", True, True, False),
    ],
)
def test_what_a_study_needs_of_its_nodes(
    address: str | None, any_version: bool, gpus: str, on_cpu: bool, compared: bool, cuda: bool
) -> None:
    options = RunOptions(
        results=Path("results"),
        data=Path("data"),
        address=address,
        mlflow=None,
        allow_version_differences=any_version,
        on_cpu=on_cpu,
    )
    spec = read_study(
        "name: n\narms: {dataset: digits, backbone: gcn, layers: 2, hidden_dim: 8}\n"
        f"resources: {{gpus_per_trial: {gpus}}}\n"
    )
    needs = options.needs(spec.resources)
    assert (bool(needs.versions), needs.cuda) == (compared, cuda)
    if compared:
        assert needs.versions["torch"] == torch.__version__
