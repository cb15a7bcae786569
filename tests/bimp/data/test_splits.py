import torch
from hypothesis import given
from hypothesis import strategies as st

from bimp.data.splits import stratified_folds, stratified_order


@given(st.lists(st.integers(0, 4), min_size=1, max_size=80), st.integers(0, 1000), st.data())
def test_every_beginning_of_the_order_is_stratified(labels: list[int], seed: int, data: st.DataObject) -> None:
    order = stratified_order(torch.tensor(labels), seed).tolist()
    assert sorted(order) == list(range(len(labels)))
    cut = data.draw(st.integers(0, len(labels)))
    for label in set(labels):
        share = cut * labels.count(label) / len(labels)
        found = sum(labels[position] == label for position in order[:cut])
        # One sample of its own class, and one tie with each of the others that came first.
        assert abs(found - share) <= len(set(labels))


def test_the_order_is_the_same_on_every_machine() -> None:
    labels = torch.tensor([0, 0, 0, 0, 1, 1])
    order = stratified_order(labels, 0)
    # Class 0 stands at 1/8, 3/8, 5/8 and 7/8 of the way, class 1 at 1/4 and 3/4; who of a class comes first is
    # the order of PCG64's first six raw numbers.
    assert labels[order].tolist() == [0, 1, 0, 0, 1, 0]
    assert order.tolist() == [3, 4, 2, 1, 5, 0]
    assert stratified_order(labels, 1).tolist() != stratified_order(labels, 0).tolist()


def test_folds_partition_the_samples() -> None:
    labels = torch.arange(6).repeat(100)
    folds = stratified_folds(labels, 10, seed=3)
    assert len(folds) == 10
    for train, val, test in folds:
        assert torch.cat([train, val, test]).sort().values.tolist() == list(range(600))
        assert labels[test].bincount().tolist() == [10] * 6
        assert labels[val].bincount().tolist() == [10] * 6
        assert labels[train].bincount().tolist() == [80] * 6
    assert torch.cat([test for _, _, test in folds]).sort().values.tolist() == list(range(600))
