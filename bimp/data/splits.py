"""Stratified splits that are the same on every machine and under every library version."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor


def stratified_order(labels: Tensor, seed: int) -> Tensor:
    """All positions, shuffled so that every stretch of the order has the classes' proportions.

    Within each class the samples are shuffled and spread evenly over the order; a stretch therefore holds of each
    class its share to within one sample or so. Cutting the order anywhere gives a stratified split.

    Args:
        labels: ``[samples]`` int64, the class of each.
        seed: fixes the shuffle. The raw stream of PCG64 is used, which NumPy promises never to change.

    Returns:
        ``[samples]`` int64, a permutation.
    """
    classes = labels.numpy()
    shuffle = np.argsort(np.random.PCG64(seed).random_raw(classes.size), kind="stable")
    place = np.empty(classes.size)
    for label in np.unique(classes):
        members = shuffle[classes[shuffle] == label]
        place[members] = (np.arange(members.size) + 0.5) / members.size
    # Classes of one size tie everywhere; the shuffle decides then, so that no class always comes first.
    return torch.from_numpy(shuffle[np.argsort(place[shuffle], kind="stable")])


def stratified_folds(labels: Tensor, folds: int, seed: int) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Cross-validation: fold k tests on part k, validates on the part behind it and trains on the rest.

    Args:
        labels: ``[samples]`` int64.
        folds: number of folds, and of the equal parts that the samples are cut into; 3 or more.
        seed: as in :func:`stratified_order`.

    Returns:
        For each fold the train, val and test positions, ascending.
    """
    order = stratified_order(labels, seed)
    bounds = [len(order) * part // folds for part in range(folds + 1)]
    parts = [order[start:stop] for start, stop in pairwise(bounds)]
    result = []
    for fold in range(folds):
        held_out = {fold, (fold + 1) % folds}
        train = torch.cat([part for number, part in enumerate(parts) if number not in held_out])
        result.append((train.sort().values, parts[(fold + 1) % folds].sort().values, parts[fold].sort().values))
    return result
