from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from drawn_graphs import without_kernels
from tape import TapedSteps

import bimp.stack.on_device  # noqa: F401  (patched by name)


@pytest.fixture
def double_precision() -> Iterator[None]:
    """Adam makes a step of what is nothing but rounding, as the gradient of a bias before a normalisation is."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def on_device(double_precision: None, monkeypatch: pytest.MonkeyPatch) -> list[TapedSteps]:
    """fit() and fit_together() go the device's way from here on; gives what captured their steps."""
    without_kernels(monkeypatch)
    captures: list[TapedSteps] = []

    def capture_on(_: object, state: Any) -> TapedSteps:
        captures.append(TapedSteps(state))
        return captures[-1]

    for module in ("bimp.engine", "bimp.stack.team", "bimp.stack.worth"):
        monkeypatch.setattr(f"{module}.has_own_path", lambda _: True)
    for module in ("bimp.device.run", "bimp.stack.on_device"):
        monkeypatch.setattr(f"{module}.capture_on", capture_on)
    return captures
