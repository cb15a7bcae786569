"""Layers of a user's own, named by import path: ``my_lab.layers:MyConv``.

Such a layer is a module that maps the rows of the nodes along the edges, as the four of this package do::

    class MyConv(nn.Module):
        def __init__(self, row_dim: int) -> None: ...
        def forward(self, h: Tensor, edge_index: Tensor, beta_hat: Tensor | None = None) -> Tensor: ...

``h`` and the result are ``[nodes, row_dim]``, ``edge_index`` is sorted by destination, and ``beta_hat``, ``[edges]``,
is the factor of each message; None: the layer is not gated. A constructor that takes ``out_dim`` too serves last layers
of another width.

Two functions keep naming and importing apart: :func:`import_layer` runs the module's code and is for a path that the
user has written; :func:`layer_class` only finds what is imported already. A network is built by the latter, so that
a configuration read from a file of results cannot make anything be imported.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from contextlib import redirect_stdout
from types import ModuleType

from torch import nn
from torch.nn.parameter import is_lazy

from bimp.config import BACKBONES, ConfigError

_GATHERING = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
"""Parameters that a call may leave empty."""


def import_layer(backbone: str) -> None:
    """Import the module of a layer of the user's own and check that the layer is one; the four need nothing.

    Raises:
        ConfigError: the module cannot be imported, or holds no such layer.
    """
    if backbone in BACKBONES:
        return
    name = backbone.partition(":")[0]
    try:
        with redirect_stdout(sys.stderr):  # what it prints is no part of a plan or study file that goes to stdout
            importlib.import_module(name)
    except (Exception, SystemExit) as error:  # a script that reads its own command line ends the process
        cause = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ConfigError(
            "backbone",
            f"found {backbone!r}, expected a module that can be imported here and on every node, "
            f"from PYTHONPATH or installed ({cause})",
        ) from error
    layer_class(backbone)


def layer_class(backbone: str) -> type[nn.Module]:
    """The class that ``backbone`` names; its module must be imported already.

    Raises:
        ConfigError: the module is not imported, has no such class, or the class is no layer.
    """
    name, _, class_name = backbone.partition(":")
    module = sys.modules.get(name)
    if module is None:
        raise ConfigError(
            "backbone",
            f"found {backbone!r}, expected {name} to be imported first: "
            "nothing is imported because a configuration names it",
        )
    return _checked(backbone, _class_in(backbone, module, class_name))


def _class_in(backbone: str, module: ModuleType, class_name: str) -> type[nn.Module]:
    found = getattr(module, class_name, None)
    if not (inspect.isclass(found) and issubclass(found, nn.Module)):
        what = "nothing of that name" if found is None else "something else"
        raise ConfigError(
            "backbone", f"found {backbone!r}, expected a class that is a torch.nn.Module; {module.__name__} has {what}"
        )
    return found


def _checked(backbone: str, layer: type[nn.Module]) -> type[nn.Module]:
    parameters = [*inspect.signature(layer.forward).parameters.values()][1:]
    further = [parameter for parameter in parameters[3:] if parameter.kind not in _GATHERING]
    needs_more = any(parameter.default is parameter.empty for parameter in further)
    if len(parameters) < 3 or parameters[2].name != "beta_hat" or needs_more:
        names = ", ".join(parameter.name for parameter in parameters)
        raise ConfigError(
            "backbone", f"found {backbone!r} with forward({names}), expected forward(h, edge_index, beta_hat=None)"
        )
    signature = inspect.signature(layer)
    try:
        signature.bind(1, **({"out_dim": 1} if "out_dim" in signature.parameters else {}))
    except TypeError as error:
        names = ", ".join(signature.parameters)
        raise ConfigError(
            "backbone",
            f"found {backbone!r} with the constructor {layer.__name__}({names}), "
            "expected (row_dim) or (row_dim, out_dim)",
        ) from error
    return layer


def own_layer(backbone: str, row_dim: int, out_dim: int) -> nn.Module:
    """One layer of the class that ``backbone`` names, from rows of ``row_dim`` to rows of ``out_dim``.

    Raises:
        ConfigError: as :func:`layer_class`; or the layer cannot be built so wide, or leaves a width open.
    """
    layer = layer_class(backbone)
    takes_out_dim = "out_dim" in inspect.signature(layer).parameters
    if out_dim != row_dim and not takes_out_dim:
        raise ConfigError(
            "out_dim",
            f"found {out_dim} with layers {row_dim} wide, expected {row_dim}: the constructor of {backbone} "
            "takes no out_dim",
        )
    try:
        with redirect_stdout(sys.stderr):
            built = layer(row_dim, out_dim=out_dim) if takes_out_dim else layer(row_dim)
        parameters = [*built.parameters()]
    except MemoryError:  # says nothing of the layer
        raise
    except Exception as error:
        cause = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ConfigError(
            "backbone", f"found {backbone!r} that cannot be built {row_dim} wide, expected any width ({cause})"
        ) from error
    if any(is_lazy(parameter) for parameter in parameters):
        raise ConfigError(
            "backbone", f"found {backbone!r} with lazy parameters, expected widths that follow from row_dim"
        )
    return built
