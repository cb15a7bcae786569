from __future__ import annotations

import numpy as np
import pytest
import torch
from graph_batches import DIRECTED, ONE_NODE, PATH, batch_of
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, recall_score
from torch.nn.functional import one_hot

from bimp.config import ConfigError
from bimp.gradient import BilateralGate
from bimp.metrics import GateSpread, GateStatistics, MetricAccumulator
from bimp.tasks import Metric

CLASSES = 4
PAIRS = st.lists(st.tuples(st.integers(0, CLASSES - 1), st.integers(0, CLASSES - 1)), min_size=1, max_size=30)


def over_batches(metric: Metric, predicted: list[int], y: list[int], batch_size: int, num_outputs: int) -> float:
    accumulator = MetricAccumulator(metric, num_outputs)
    scores = one_hot(torch.tensor(predicted), num_outputs).float()
    for batch_scores, batch_y in zip(scores.split(batch_size), torch.tensor(y).split(batch_size), strict=True):
        accumulator.update(batch_scores, batch_y)
    return accumulator.value()


@settings(max_examples=60, deadline=None)
@given(pairs=PAIRS, batch_size=st.integers(1, 10))
def test_classification_metrics_equal_scikit_learns(pairs: list[tuple[int, int]], batch_size: int) -> None:
    predicted, y = (list(column) for column in zip(*pairs, strict=True))
    assert over_batches("accuracy", predicted, y, batch_size, CLASSES) == pytest.approx(accuracy_score(y, predicted))
    # scikit-learn's balanced_accuracy_score warns of predicted classes that do not occur; its parts do not.
    recall = recall_score(y, predicted, labels=sorted(set(y)), average="macro")
    assert over_batches("balanced_accuracy", predicted, y, batch_size, CLASSES) == pytest.approx(recall)


@settings(max_examples=60, deadline=None)
@given(pairs=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1), batch_size=st.integers(1, 10))
def test_f1_equals_scikit_learns(pairs: list[tuple[int, int]], batch_size: int) -> None:
    predicted, y = (list(column) for column in zip(*pairs, strict=True))
    expected = f1_score(y, predicted, pos_label=1, zero_division=0)
    assert over_batches("f1", predicted, y, batch_size, 2) == pytest.approx(expected)


def test_f1_by_hand() -> None:
    # Of class 1: two hits, one false alarm, one miss: 2 * 2 / (2 * 2 + 1 + 1).
    assert over_batches("f1", [1, 1, 1, 0, 0], [1, 1, 0, 1, 0], 2, 2) == pytest.approx(4 / 6)
    assert over_batches("f1", [0, 0], [0, 0], 2, 2) == 0


def test_balanced_accuracy_leaves_absent_classes_out() -> None:
    # Recalls: class 0 two of three, class 2 one of one; class 1 does not occur.
    assert over_batches("balanced_accuracy", [0, 0, 1, 2], [0, 0, 0, 2], 3, 3) == pytest.approx((2 / 3 + 1) / 2)


def test_mae_weighs_items_and_not_batches() -> None:
    accumulator = MetricAccumulator("mae", 1)
    accumulator.update(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.0, 0.0, 0.0]))
    accumulator.update(torch.tensor([-4.0]), torch.tensor([2.0]))
    assert accumulator.value() == pytest.approx((1 + 2 + 3 + 6) / 4)


@pytest.mark.parametrize("metric", ["mae", "accuracy"])
def test_nothing_added_is_an_error(metric: Metric) -> None:
    with pytest.raises(ValueError, match=f"{metric}: found no item"):
        MetricAccumulator(metric, 2).value()
    accumulator = MetricAccumulator(metric, 2)
    accumulator.update(torch.empty(0) if metric == "mae" else torch.empty(0, 2), torch.empty(0, dtype=torch.long))
    with pytest.raises(ValueError, match="found no item"):
        accumulator.value()


def test_a_measure_that_is_none_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"^metric: found 'acc', expected one of mae, accuracy, balanced_accuracy, f1$"
    ):
        MetricAccumulator("acc", 2)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"^reduction: found 'mean', expected one of dataset, batch$"):
        MetricAccumulator("f1", 2, "mean")  # type: ignore[arg-type]


def test_labels_in_a_column_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^y: found \[2, 1\], expected \[2\], one label an item$"):
        MetricAccumulator("mae", 1).update(torch.tensor([1.0, 4.0]), torch.tensor([[0.0], [1.0]]))


def test_gate_spread_by_hand() -> None:
    # Node 1 of the path has two in-neighbours, the ends one each: deg * beta_hat is 1, 2 * 0.3, 2 * 0.7, 1.
    path = batch_of(PATH)
    spread = GateSpread()
    assert spread.value() is None
    spread.update(torch.tensor([1.0, 0.3, 0.7, 1.0]), path)
    value = spread.value()
    assert value is not None
    assert value.minimum == pytest.approx(0.6)
    assert value.maximum == pytest.approx(1.4)
    assert value.std == pytest.approx(((0.4**2 + 0.4**2) / 4) ** 0.5)


def test_gate_spread_over_batches_and_layers_equals_all_at_once() -> None:
    torch.manual_seed(0)
    spread, values = GateSpread(), []
    for graphs in ((PATH, DIRECTED), (ONE_NODE,), (DIRECTED, DIRECTED, PATH)):
        batch = batch_of(*graphs)
        degree = torch.bincount(batch.edge_index[1], minlength=batch.num_nodes)
        for _ in range(2):
            gate = BilateralGate(3, 3, 3, 0.2, "bilateral")
            beta_hat = gate(3 * torch.randn(batch.num_nodes, 3), batch).beta_hat
            spread.update(beta_hat, batch)
            values.append((degree[batch.edge_index[1]] * beta_hat.double()).detach().numpy())
    everything = np.concatenate(values)
    found = spread.value()
    assert found is not None
    assert found.minimum == pytest.approx(everything.min(), abs=1e-12)
    assert found.maximum == pytest.approx(everything.max(), abs=1e-12)
    assert found.std == pytest.approx(everything.std(), abs=1e-12)
    assert found.std > 1e-3


def test_gate_spread_of_a_uniform_gate() -> None:
    batch = batch_of(PATH, DIRECTED)
    spread = GateSpread()
    spread.update(BilateralGate(3, 3, 3, 1.0, "uniform")(torch.randn(7, 3), batch).beta_hat, batch)
    found = spread.value()
    assert isinstance(found, GateStatistics)
    assert (found.minimum, found.maximum) == pytest.approx((1, 1), abs=1e-6)
    assert found.std == pytest.approx(0, abs=1e-6)


def test_mean_over_batches_depends_on_their_size() -> None:
    # F1 of (1 hit, 1 miss, 0 false alarms) is 2/3 and of (0, 1, 0) is 0; of all three items together 2/4.
    scores = torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    y = torch.ones(3, dtype=torch.long)
    found = {}
    for reduction in ("dataset", "batch"):
        metric = MetricAccumulator("f1", 2, reduction)
        metric.update(scores[:2], y[:2])
        metric.update(scores[:0], y[:0])  # a graph without edges has no item and no F1
        metric.update(scores[2:], y[2:])
        found[reduction] = metric.value()
    assert found == {"dataset": pytest.approx(1 / 2), "batch": pytest.approx((2 / 3 + 0) / 2)}


def test_mean_of_absolute_errors_over_batches() -> None:
    metric = MetricAccumulator("mae", 1, "batch")
    metric.update(torch.tensor([1.0, 3.0]), torch.zeros(2))
    metric.update(torch.tensor([6.0]), torch.zeros(1))
    assert metric.value() == pytest.approx((2 + 6) / 2)
    with pytest.raises(ValueError, match="found no item"):
        MetricAccumulator("mae", 1, "batch").value()
