"""Lines that readers print go to the log; downloads are shown, of bars the end is logged, and errors pass."""

from __future__ import annotations

import logging
import sys

import pytest
from tqdm import tqdm

from bimp.data.reader_lines import readers_logged


def test_lines_are_logged_and_downloads_shown(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "bimp")
    with readers_logged():
        print("Processing...", file=sys.stderr)
        print("Downloading https://example.org/a.zip", file=sys.stderr)
        for _ in tqdm(range(3), desc="Processing train dataset"):
            pass
        print("Done!", file=sys.stderr)
    print("ours", file=sys.stderr)
    assert capsys.readouterr().err == "Downloading https://example.org/a.zip\nours\n"
    first, bar, last = (entry.message for entry in caplog.records)
    assert (first, bar.partition(":")[0], last) == ("Processing...", "Processing train dataset", "Done!")


def test_errors_pass(capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> None:
        with readers_logged():
            print("Processing...", file=sys.stderr)
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        broken()
    print("after", file=sys.stderr)
    assert capsys.readouterr().err == "after\n"
