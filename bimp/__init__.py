"""Bilateral message passing: models, training and data, without Ray, MLflow or files of results.

``bimp.BilateralConv`` and ``bimp.gated_convolution`` are loaded when they are first asked for: importing ``bimp``, or a
module of it that needs no PyTorch, stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bimp.convolution import BilateralConv, gated_convolution

__all__ = ["BilateralConv", "gated_convolution"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from bimp import convolution

    return getattr(convolution, name)
