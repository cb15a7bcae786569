"""What a run keeps of its datasets beside the records."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from bimp.data import load_or_prepare
from reports.records.used_data import UsedData, load_used_data
from study.results import ResultsFolder
from study.used_data import keep_used_data


def test_datasets_are_kept_by_fingerprint_those_of_earlier_runs_too(tmp_path: Path) -> None:
    digits = load_or_prepare("digits", tmp_path / "data")
    folder = ResultsFolder(tmp_path)
    keep_used_data(folder, [replace(digits, fingerprint="earlier", origin="elsewhere")])
    keep_used_data(folder, [digits])
    # scikit-learn has 1,797 digits; the splits are told by the tensors that a trial reads.
    counts = {name: len(folds[0]) for name, folds in digits.splits.items()}
    assert sum(counts.values()) == 1_797
    splits = tuple(counts.items())
    assert load_used_data(tmp_path) == {
        "earlier": UsedData(title="Digits", origin="elsewhere", graphs=1_797, split_graphs=splits),
        digits.fingerprint: UsedData(title="Digits", origin=digits.origin, graphs=1_797, split_graphs=splits),
    }


def test_a_file_that_was_cut_is_written_anew(tmp_path: Path) -> None:
    digits = load_or_prepare("digits", tmp_path / "data")
    folder = ResultsFolder(tmp_path)
    folder.data_file.write_text('{"format": 1, "data')
    keep_used_data(folder, [digits])
    assert list(json.loads(folder.data_file.read_text())["datasets"]) == [digits.fingerprint]
