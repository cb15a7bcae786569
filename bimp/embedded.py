"""Rows that are an embedding of few numbers: a map of them is a map of what they were embedded from.

The first layer maps ``h = E[x]`` or ``h = M x + c``. There are as many different rows as kinds of nodes, or they span
as few dimensions as a node has inputs: ``U h`` is ``(U E)[x]`` or ``(U M) x + U c``, and the product over all nodes
becomes one over the kinds or the inputs. In a network of four layers that is a quarter of its products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

import torch.nn.functional as F
from torch import Tensor, nn

from bimp.kernels.choice import kernels_serve
from bimp.kernels.linear import Linear, linear

FEWEST_TIMES = 4
"""How many times fewer rows, or inputs, a map must go over to be worth an order of its own."""


@dataclass(frozen=True)
class Embedded:
    """What rows are an embedding of.

    Attributes:
        inputs: ``[rows]`` int64, or ``[rows, inputs]`` float.
        weight: of the embedding, ``[numbers, row_dim]``; of the linear map, ``[row_dim, inputs]``.
        bias: of the linear map, ``[row_dim]``; None: none.
    """

    inputs: Tensor
    weight: Tensor
    bias: Tensor | None = None

    def mapped(self, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """``rows @ weight.T + bias``, differentiable, ``[rows, out]``."""
        if self.inputs.dim() == 1:
            return F.embedding(self.inputs, F.linear(self.weight, weight, bias))
        added = self.added(weight)
        if added is not None:
            bias = added if bias is None else bias + added
        return F.linear(self.inputs, weight @ self.weight, bias)

    def added(self, weight: Tensor) -> Tensor | None:
        """What every row of ``rows @ weight.T`` has of the embedding's bias, ``[out]``; None: nothing."""
        return None if self.bias is None else weight.mv(self.bias)

    def as_map(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """``rows @ weight.T`` less what is :meth:`added` to every row, as ``columns @ map.T``.

        Returns:
            The columns, ``[rows, inputs]``, or ``[rows, numbers]`` with a 1 at each row's number; and the map.
        """
        if self.inputs.dim() == 2:
            return self.inputs, weight @ self.weight
        columns = weight.new_zeros(len(self.inputs), len(self.weight))
        return columns.scatter_(1, self.inputs.unsqueeze(1), 1), weight @ self.weight.t()


def embedded_from(embedding: nn.Module, inputs: Tensor) -> Embedded | None:
    """What the rows ``embedding(inputs)`` are an embedding of; None where a map of it would save little.

    Args:
        embedding: one that :func:`is_table`, or exactly a ``Linear`` that nobody hooks; every other module gives None.
        inputs: what it is given; those with a gradient of their own give None.
    """
    if inputs.requires_grad:
        return None
    if is_table(embedding):
        is_worth_it = embedding.num_embeddings * FEWEST_TIMES <= len(inputs) and kernels_serve(embedding.weight)
        return Embedded(inputs, embedding.weight) if is_worth_it else None
    if type(embedding) is Linear and not _is_hooked(embedding):
        is_worth_it = embedding.in_features * FEWEST_TIMES <= embedding.out_features
        if is_worth_it and kernels_serve(embedding.weight, embedding.bias):
            return Embedded(inputs, embedding.weight, embedding.bias)
    return None


def is_table(embedding: nn.Module) -> TypeGuard[nn.Embedding]:
    """Whether ``embedding`` does nothing but look up rows of its weight: whoever reads that leaves nothing out.

    A module of another type does more, a parametrised one for instance; one that is hooked, or renormalises its rows
    or scales or drops gradients, as well.
    """
    return (
        type(embedding) is nn.Embedding
        and not _is_hooked(embedding)
        and embedding.padding_idx is None
        and embedding.max_norm is None
        and not embedding.scale_grad_by_freq
        and not embedding.sparse
    )


def _is_hooked(module: nn.Module) -> bool:
    """Whether somebody's code runs when ``module`` is called: a hook, or a ``forward`` of its own in its place."""
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
        or "forward" in vars(module)
    )


def map_rows(rows: Tensor, weight: Tensor, bias: Tensor | None, embedded: Embedded | None) -> Tensor:
    """``rows @ weight.T + bias``, by what ``rows`` are ``embedded`` from where that is known."""
    return linear(rows, weight, bias) if embedded is None else embedded.mapped(weight, bias)
