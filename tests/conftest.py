"""What tests of every package share."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
import torch
from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_collection_finish() -> None:
    """What was imported stays until the end: no collection of garbage, of which libraries ask for many, looks at it."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def raw_data() -> Path:
    """The folder of real raw datasets (``zinc/``, ``tu/``) that ``BIMP_RAW_DATA`` names."""
    folder = os.environ.get("BIMP_RAW_DATA")
    if not folder:
        pytest.skip("BIMP_RAW_DATA names no folder of raw datasets")
    return Path(folder)
