"""Our networks written out by the released names, tensor by tensor as a reader of their layout would do it."""

from __future__ import annotations

from torch import Tensor

from bimp.network import Network

GATED_GCN = {
    "A": "node_self",
    "B": "node_source",
    "C": "edge_self",
    "D": "edge_source",
    "E": "edge_destination",
    "bn_node_h": "node_norm",
    "bn_node_e": "edge_norm",
}


def exported(network: Network, *, per_head: bool = False) -> dict[str, Tensor]:
    """The state dict of ``network`` by the released names.

    ``per_head``: GAT layers without a gate are written head by head, as those of the TSP and TU bi-GAT nets.
    """
    ours = {name: value.clone() for name, value in network.state_dict().items()}
    model = network.model
    theirs: dict[str, Tensor] = {}

    def move(prefix: str, target: str) -> None:
        for name in [name for name in ours if name.startswith(f"{prefix}.")]:
            theirs[target + name.removeprefix(prefix)] = ours.pop(name)

    move("node_embedding", "embedding_h")
    move("edge_embedding", "embedding_e")
    move("pos_enc_embedding", "embedding_pos_enc")
    for number, place in enumerate((0, 2, 4)):
        move(f"head.scorer.{place}", f"MLP_layer.FC_layers.{number}")
    for position in range(1, model.layers + 1):
        layer = f"layers.{position - 1}"
        is_gated = position in model.gated_layers
        move(f"gates.{position}.first_assignment", f"{layer}.s1")
        move(f"gates.{position}.second_assignment", f"{layer}.s2")
        move(f"gates.{position}.metric", f"{layer}.metric")
        if model.backbone == "gated_gcn":
            for letter, name in GATED_GCN.items():
                move(f"{layer}.{name}", f"{layer}.{letter}")
        elif model.backbone == "gat" and (is_gated or per_head):
            _by_head(ours, theirs, layer, 1 if position == model.layers else model.heads)
        else:
            move(f"{layer}.norm", f"{layer}.batchnorm_h")
            if model.backbone == "gcn" and model.gcn_normalisation == "symmetric":
                theirs[f"{layer}.conv.weight"] = ours.pop(f"{layer}.update.weight").t().contiguous()
                theirs[f"{layer}.conv.bias"] = ours.pop(f"{layer}.update.bias")
            elif model.backbone == "gcn":
                move(f"{layer}.update", f"{layer}.apply_mod.linear")
            elif model.backbone == "graphsage":
                move(f"{layer}.pool", f"{layer}.maxlinear" if is_gated else f"{layer}.aggregator.linear")
                move(f"{layer}.update", f"{layer}.nodeapply.linear")
            else:
                theirs[f"{layer}.gatconv.fc.weight"] = ours.pop(f"{layer}.projection.weight")
                theirs[f"{layer}.gatconv.attn_l"] = ours.pop(f"{layer}.attention_source")[None]
                theirs[f"{layer}.gatconv.attn_r"] = ours.pop(f"{layer}.attention_destination")[None]
    assert not ours, f"left over: {list(ours)}"
    return theirs


def _by_head(ours: dict[str, Tensor], theirs: dict[str, Tensor], layer: str, heads: int) -> None:
    weight = ours.pop(f"{layer}.projection.weight")
    source, destination = ours.pop(f"{layer}.attention_source"), ours.pop(f"{layer}.attention_destination")
    bias, attention_bias = ours.pop(f"{layer}.projection.bias", None), ours.pop(f"{layer}.attention_bias", None)
    norm = {name: ours.pop(f"{layer}.norm.{name}") for name in ("weight", "bias", "running_mean", "running_var")}
    batches = ours.pop(f"{layer}.norm.num_batches_tracked")
    width = weight.shape[0] // heads
    for head in range(heads):
        rows, name = slice(head * width, (head + 1) * width), f"{layer}.heads.{head}"
        theirs[f"{name}.fc.weight"] = weight[rows]
        attention = theirs[f"{name}.attn_fc.weight"] = weight.new_empty(1, 2 * width)
        attention[0, :width] = source[head]
        attention[0, width:] = destination[head]
        if bias is not None and attention_bias is not None:
            theirs[f"{name}.fc.bias"] = bias[rows]
            theirs[f"{name}.attn_fc.bias"] = attention_bias[head : head + 1]
        for part, values in norm.items():
            theirs[f"{name}.batchnorm_h.{part}"] = values[rows]
        theirs[f"{name}.batchnorm_h.num_batches_tracked"] = batches.clone()
