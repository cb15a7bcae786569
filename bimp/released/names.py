"""Which released tensors each of our tensors is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bimp.config import ModelConfig

NORM = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
LINEAR = ("weight", "bias")
GATED_GCN_MAPS = {
    "node_self": "A",
    "node_source": "B",
    "edge_self": "C",
    "edge_source": "D",
    "edge_destination": "E",
}


@dataclass(frozen=True)
class Piece:
    """One tensor of a :class:`~bimp.network.Network`.

    Attributes:
        ours: its name.
        theirs: the released names that it is made of.
        make: makes it of those tensors, in their order.
    """

    ours: str
    theirs: tuple[str, ...]
    make: Callable[[Sequence[Tensor]], Tensor]


def pieces(model: ModelConfig, *, embeds_nodes: bool, embeds_edges: bool, per_head: bool) -> Iterator[Piece]:
    """Every tensor of the network of ``model``.

    Args:
        model: the network, with ``released`` names for what it is: a GCN of symmetric normalisation is the
            benchmark's, one of the mean the authors'.
        embeds_nodes: whether node inputs are embedded, rather than mapped linearly.
        embeds_edges: the same of edge inputs.
        per_head: whether GAT layers without a gate keep each head by itself, as gated ones do.
    """
    yield from _same("node_embedding", "embedding_h", ("weight",) if embeds_nodes else LINEAR)
    if model.pos_enc_dim is not None:
        yield from _same("pos_enc_embedding", "embedding_pos_enc", LINEAR)
    if model.backbone == "gated_gcn":
        yield from _same("edge_embedding", "embedding_e", ("weight",) if embeds_edges else LINEAR)
    for position in range(1, model.layers + 1):
        yield from _layer(model, position, per_head)
    for number in range(3 if model.head == "mlp" else 1):
        yield from _same(f"head.scorer.{2 * number}", f"MLP_layer.FC_layers.{number}", LINEAR)


def _layer(model: ModelConfig, position: int, per_head: bool) -> Iterator[Piece]:
    ours, theirs = f"layers.{position - 1}", f"layers.{position - 1}"
    is_gated = position in model.gated_layers
    if is_gated:
        gate = f"gates.{position}"
        assignment = LINEAR if model.assignment_bias else ("weight",)
        yield from _same(f"{gate}.first_assignment", f"{theirs}.s1", assignment)
        yield from _same(f"{gate}.second_assignment", f"{theirs}.s2", assignment)
        yield from _same(f"{gate}.metric", f"{theirs}.metric", LINEAR if model.metric_bias else ("weight",))
    if model.backbone == "gcn":
        yield from _gcn(ours, theirs, is_conv=model.gcn_normalisation == "symmetric")
    elif model.backbone == "graphsage":
        yield from _same(f"{ours}.pool", f"{theirs}.{'maxlinear' if is_gated else 'aggregator.linear'}", LINEAR)
        yield from _same(f"{ours}.update", f"{theirs}.nodeapply.linear", LINEAR)
        yield from _same(f"{ours}.norm", f"{theirs}.batchnorm_h", NORM)
    elif model.backbone == "gated_gcn":
        for name, letter in GATED_GCN_MAPS.items():
            yield from _same(f"{ours}.{name}", f"{theirs}.{letter}", LINEAR)
        yield from _same(f"{ours}.node_norm", f"{theirs}.bn_node_h", NORM)
        yield from _same(f"{ours}.edge_norm", f"{theirs}.bn_node_e", NORM)
    elif is_gated or per_head:
        heads = [f"{theirs}.heads.{head}" for head in range(1 if position == model.layers else model.heads)]
        yield from _gat_of_heads(ours, heads, model.gated_attention_bias if is_gated else model.attention_bias)
    else:
        yield from _gat(ours, theirs)


def _same(ours: str, theirs: str, tensors: Sequence[str]) -> Iterator[Piece]:
    for tensor in tensors:
        yield Piece(f"{ours}.{tensor}", (f"{theirs}.{tensor}",), _first)


def _gcn(ours: str, theirs: str, *, is_conv: bool) -> Iterator[Piece]:
    if is_conv:
        yield Piece(f"{ours}.update.weight", (f"{theirs}.conv.weight",), _transposed)
        yield Piece(f"{ours}.update.bias", (f"{theirs}.conv.bias",), _first)
    else:
        yield from _same(f"{ours}.update", f"{theirs}.apply_mod.linear", LINEAR)
    yield from _same(f"{ours}.norm", f"{theirs}.batchnorm_h", NORM)


def _gat(ours: str, theirs: str) -> Iterator[Piece]:
    yield Piece(f"{ours}.projection.weight", (f"{theirs}.gatconv.fc.weight",), _first)
    yield Piece(f"{ours}.attention_source", (f"{theirs}.gatconv.attn_l",), _first_of_batch)
    yield Piece(f"{ours}.attention_destination", (f"{theirs}.gatconv.attn_r",), _first_of_batch)
    yield from _same(f"{ours}.norm", f"{theirs}.batchnorm_h", NORM)


def _gat_of_heads(ours: str, heads: Sequence[str], bias: bool) -> Iterator[Piece]:
    def named(name: str) -> tuple[str, ...]:
        return tuple(f"{head}.{name}" for head in heads)

    yield Piece(f"{ours}.projection.weight", named("fc.weight"), _stacked)
    yield Piece(f"{ours}.attention_source", named("attn_fc.weight"), _source_halves)
    yield Piece(f"{ours}.attention_destination", named("attn_fc.weight"), _destination_halves)
    if bias:
        yield Piece(f"{ours}.projection.bias", named("fc.bias"), _stacked)
        yield Piece(f"{ours}.attention_bias", named("attn_fc.bias"), _stacked)
    for tensor in NORM:
        # All heads have seen the same batches, so that they count alike.
        make = _first if tensor == "num_batches_tracked" else _stacked
        yield Piece(f"{ours}.norm.{tensor}", named(f"batchnorm_h.{tensor}"), make)


def _first(tensors: Sequence[Tensor]) -> Tensor:
    return tensors[0]


def _stacked(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat(list(tensors))


def _transposed(tensors: Sequence[Tensor]) -> Tensor:
    return tensors[0].t()


def _first_of_batch(tensors: Sequence[Tensor]) -> Tensor:
    return tensors[0].squeeze(0)


def _source_halves(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([tensor[:, : tensor.shape[1] // 2] for tensor in tensors])


def _destination_halves(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([tensor[:, tensor.shape[1] // 2 :] for tensor in tensors])
