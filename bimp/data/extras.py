"""Packages that only one way to a dataset needs, and that an installation may lack."""

from __future__ import annotations

from importlib.util import find_spec

from bimp.data.errors import DataError


def require_extra(dataset: str, module: str, package: str, extra: str) -> None:
    """See that ``module`` can be imported, before anything long begins.

    Raises:
        DataError: it cannot; the message names the optional extra that brings it.
    """
    if find_spec(module) is None:
        raise DataError(
            f"{dataset}: found no package {package}, expected it for making these graphs; "
            f"run `pip install 'bimp-study[{extra}]'`"
        )
