"""Weights trained with the released code, in a :class:`~bimp.network.Network`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from bimp.config import ModelConfig, TrialConfig
from bimp.data.torch_files import CUT_OR_FOREIGN, load_tensors
from bimp.network import Network
from bimp.released.configuration import ReleasedError, load_config
from bimp.released.names import Piece, pieces
from bimp.semantics import ATTENTION_SLOPE, BLOCK_MODELS, PER_HEAD_ATTENTION_SLOPE
from bimp.tasks import task_of

_EXPECTED_SHAPES = "expected those of the network that the configuration describes"


def load_network(
    state_dict: Mapping[str, Tensor] | Path | str, config: TrialConfig | Mapping[str, Any] | Path | str
) -> Network:
    """The network of ``config`` with released weights, in their precision and in evaluation mode.

    What a configuration does not say, since the released scripts differ in it, is read off the weights, and is a
    setting of the network that comes back: ``conv`` layers of a GCN mean ``gcn_normalisation: symmetric``; GAT layers
    without a gate that keep each head by itself have the slope 0.01; biases of GAT are there if they have weights;
    ``s1`` of a gated last GAT layer tells ``assignment_width``; the nets of CLUSTER and PATTERN may ignore ``out_dim``.

    Args:
        state_dict: by the released names, or the path of a checkpoint.
        config: from :func:`load_config`, or what that takes.

    Raises:
        ReleasedError: the checkpoint is not readable, names are unknown or missing (all are listed), or shapes differ.
    """
    weights = read_checkpoint(state_dict) if isinstance(state_dict, str | Path) else state_dict
    where = str(state_dict) if isinstance(state_dict, str | Path) else "released weights"
    if not isinstance(config, TrialConfig):
        config = load_config(config, num_clusters=clusters_of(weights))
    task = task_of(config.dataset)
    model, per_head = _as_the_weights_say(_with_last_dim(config, weights), weights)
    network = Network(model, task)
    wanted = list(
        pieces(
            model,
            embeds_nodes=task.node_input == "embedding",
            embeds_edges=task.edge_input == "embedding" and model.edge_features == "given",
            per_head=per_head,
        )
    )
    _require_names(where, weights, wanted)
    floats = [tensor.dtype for tensor in weights.values() if tensor.is_floating_point()]
    network = network.to(floats[0])
    network.load_state_dict(_made(where, weights, wanted, network))
    return network.eval()


def read_checkpoint(path: Path | str) -> dict[str, Tensor]:
    """The state dict in a checkpoint, which holds it alone or under ``state_dict``; no code in the file is run.

    Raises:
        ReleasedError: the file is not readable, or holds more than tensors and plain values, or no state dict.
    """
    try:
        content = load_tensors(Path(path))
    except CUT_OR_FOREIGN as error:
        reason = str(error).partition("\n")[0]
        raise ReleasedError(f"{path}: found no checkpoint that can be read safely ({reason})") from error
    if isinstance(content, Mapping) and isinstance(content.get("state_dict"), Mapping):
        content = content["state_dict"]
    if not isinstance(content, Mapping) or not content or not all(isinstance(v, Tensor) for v in content.values()):
        raise ReleasedError(f"{path}: found a {type(content).__name__}, expected tensors by name")
    return dict(content)


def clusters_of(weights: Mapping[str, Tensor]) -> int | None:
    """K of the first gate in ``weights``; None for a vanilla network."""
    return next((tensor.shape[0] for name, tensor in weights.items() if name.endswith(".s2.weight")), None)


def _with_last_dim(config: TrialConfig, weights: Mapping[str, Tensor]) -> ModelConfig:
    """The model with the last layer's width as its weights say, where the configuration does not tell it."""
    first_of_head = weights.get("MLP_layer.FC_layers.0.weight")
    model = config.model
    if config.dataset not in BLOCK_MODELS or first_of_head is None or first_of_head.shape[1] == model.last_dim:
        return model
    return replace(model, out_dim=first_of_head.shape[1])


def _as_the_weights_say(model: ModelConfig, weights: Mapping[str, Tensor]) -> tuple[ModelConfig, bool]:
    """The model with what only its weights tell, and whether its GAT layers without a gate keep heads by themselves."""
    if model.backbone == "gcn":
        symmetric = any(".conv." in name for name in weights)
        return replace(model, gcn_normalisation="symmetric" if symmetric else "mean"), False
    if model.backbone != "gat":
        return model, False
    ungated = [position for position in range(1, model.layers + 1) if position not in model.gated_layers]
    per_head = any(_first_head(position) in weights for position in ungated)
    if ungated:
        slope = PER_HEAD_ATTENTION_SLOPE if per_head else ATTENTION_SLOPE
        model = replace(model, attention_slope=slope, attention_bias=_has_bias(weights, ungated))
    if model.gated_layers:
        last = weights.get(f"layers.{model.layers - 1}.s1.weight")
        of_head = last is not None and last.shape[0] == model.last_dim != model.hidden_dim
        model = replace(
            model,
            gated_attention_bias=_has_bias(weights, model.gated_layers),
            assignment_width="head" if of_head else "hidden_dim",
        )
    return model, per_head


def _first_head(position: int) -> str:
    return f"layers.{position - 1}.heads.0.fc.weight"


def _has_bias(weights: Mapping[str, Tensor], positions: Sequence[int]) -> bool:
    return any(f"layers.{position - 1}.heads.0.fc.bias" in weights for position in positions)


def _require_names(where: str, weights: Mapping[str, Tensor], wanted: Sequence[Piece]) -> None:
    expected = {name for piece in wanted for name in piece.theirs}
    unknown = [name for name in weights if name not in expected]
    missing = sorted(expected - set(weights))
    if unknown or missing:
        parts = [f"{kind} {', '.join(names)}" for kind, names in (("unknown", unknown), ("missing", missing)) if names]
        raise ReleasedError(f"{where}: found other names than the configuration's network has: {'; '.join(parts)}")


def _made(where: str, weights: Mapping[str, Tensor], wanted: Sequence[Piece], network: Network) -> dict[str, Tensor]:
    made: dict[str, Tensor] = {}
    for piece in wanted:
        try:
            tensor = piece.make([weights[name] for name in piece.theirs])
        except RuntimeError as error:
            raise ReleasedError(f"{where}: {', '.join(piece.theirs)}: {error}; {_EXPECTED_SHAPES}") from error
        expected = network.state_dict()[piece.ours].shape
        if tensor.shape != expected:
            raise ReleasedError(
                f"{where}: {', '.join(piece.theirs)}: found shape {list(tensor.shape)} of {piece.ours}, "
                f"expected {list(expected)}; {_EXPECTED_SHAPES}"
            )
        made[piece.ours] = tensor
    return made
