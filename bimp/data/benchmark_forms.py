"""The forms in which a graph of the benchmark may come, and the one form in which networks take it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from bimp.tasks import TaskSpec


def node_rows(graph: Mapping[str, Any], task: TaskSpec) -> Tensor:
    """Node inputs: ``[nodes, node_dim]`` float32, or ``[nodes]`` int64 where the task embeds them.

    Coordinates may stand in ``pos`` or behind the other columns of ``x``, and be all there is; what is embedded may be
    whole numbers, or one-hot.

    Raises:
        ValueError: neither form.
    """
    x, pos = graph.get("x"), graph.get("pos")
    if task.node_input == "embedding":
        if x is None:
            raise ValueError("a graph has no x")
        return _numbers(x, task.node_dim)
    parts = {name: _columns(part) for name, part in (("x", x), ("pos", pos)) if part is not None}
    together = torch.cat(list(parts.values()), dim=1) if parts else torch.empty(0, 0)
    for candidate in (parts.get("x", together), together):
        if candidate.shape[1] == task.node_dim:
            return candidate
    found = " and ".join(f"{part.shape[1]} columns in {name}" for name, part in parts.items()) or "neither x nor pos"
    raise ValueError(f"a graph has {found}, not {task.node_dim} columns together")


def edge_rows(graph: Mapping[str, Any]) -> Tensor:
    """Edge inputs ``[edges, columns]`` float32; one column may come without a dimension of its own.

    Raises:
        ValueError: there are none.
    """
    values = graph.get("edge_attr")
    if values is None:
        raise ValueError("a graph has no edge_attr")
    return _columns(values)


def edge_ends(graph: Mapping[str, Any], nodes: int, dtype: torch.dtype) -> Tensor:
    """Source and destination of each edge, ``[2, edges]``, in a type that holds the numbers of the graph's ``nodes``.

    Raises:
        ValueError: an edge to a node that the graph does not have.
    """
    ends: Tensor = graph["edge_index"]
    # Before the cast, which would make a node of another number of it.
    if bool(((ends < 0) | (ends >= nodes)).any()):
        raise ValueError("a graph has an edge to a node that it does not have")
    return ends.to(dtype)


def graph_labels(graph: Mapping[str, Any], task: TaskSpec) -> Tensor:
    """Labels of the graph, of its nodes or of its edges, one whole number each; edges' take a byte.

    Raises:
        ValueError: there are none, or one is no whole number or no byte where it is to take one.
    """
    y = graph.get("y")
    if y is None:
        raise ValueError("a graph has no y")
    labels = torch.as_tensor(y).reshape(-1)
    classes = labels.to(torch.uint8 if task.kind == "edge_classification" else torch.int64)
    if not bool((labels == classes).all()):
        raise ValueError("a graph has a label that is no class: no whole number, or beyond them")
    return classes


def _columns(values: Tensor) -> Tensor:
    return (values.unsqueeze(1) if values.dim() == 1 else values).float()


def _numbers(x: Tensor, values: int) -> Tensor:
    """Whole numbers from 0 to ``values`` - 1, given as such or one-hot."""
    if x.dim() == 2 and x.shape[1] == values and values > 1:
        if not bool(((x == 1).sum(dim=1) == 1).all() and ((x == 0).sum(dim=1) == values - 1).all()):
            raise ValueError(f"a graph has an x of {values} columns that is not one-hot")
        return x.argmax(dim=1)
    if x.dim() > 2 or (x.dim() == 2 and x.shape[1] != 1):
        raise ValueError(f"a graph has an x of shape {list(x.shape)}, neither {values} columns nor one")
    numbers = x.reshape(-1)
    if not bool((numbers == numbers.long()).all()):
        raise ValueError("a graph has an x that is neither one-hot nor whole numbers")
    return numbers.long()
