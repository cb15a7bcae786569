"""The message-passing layers that a configuration can name."""

from __future__ import annotations

import re
from typing import Literal, get_args

from bimp.config.requirements import ConfigError, require_choice

NamedBackbone = Literal["gcn", "graphsage", "gat", "gated_gcn"]
Backbone = str
"""A :data:`NamedBackbone`, or a layer of the user's own as ``module:Class`` (see :mod:`bimp.layers.own`)."""

BACKBONES: tuple[NamedBackbone, ...] = get_args(NamedBackbone)
GAT_HEADS = 8
"""Heads of every GAT of the benchmark (the last layer has a single one)."""

_OWN_LAYER = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


def require_backbone(backbone: object) -> None:
    """Check that ``backbone`` is one of the four or has the form ``module:Class``; nothing is imported.

    Raises:
        ConfigError: it is neither.
    """
    if isinstance(backbone, str) and ":" in backbone:
        if _OWN_LAYER.fullmatch(backbone) is None:
            raise ConfigError("backbone", f"found {backbone!r}, expected module:Class such as my_lab.layers:MyConv")
    else:
        require_choice("backbone", backbone, BACKBONES)
