"""What a results folder tells of the data behind its records."""

import json
from pathlib import Path

import pytest
from made_studies import write_used_data

from reports.records.plan import ResultsError
from reports.records.used_data import UsedData, load_used_data


def test_what_was_kept_is_read_by_fingerprint(tmp_path: Path) -> None:
    assert load_used_data(write_used_data(tmp_path, "ZINC", train=10, val=2, test=3)) == {
        "0f": UsedData(title="ZINC", origin="made", graphs=15, split_graphs=(("train", 10), ("val", 2), ("test", 3)))
    }


def test_an_older_study_kept_nothing(tmp_path: Path) -> None:
    assert load_used_data(tmp_path) == {}


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        json.dumps({"format": 2, "datasets": {}}),
        json.dumps({"format": 1}),
        json.dumps({"format": 1, "datasets": {"0f": {"title": "ZINC"}}}),
        json.dumps({"format": 1, "datasets": {"0f": {"title": 1, "origin": "", "graphs": 1, "split_graphs": {}}}}),
        json.dumps(
            {"format": 1, "datasets": {"0f": {"title": "", "origin": "", "graphs": 1, "split_graphs": {"a": "b"}}}}
        ),
    ],
)
def test_another_file_is_refused_in_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "data.json").write_text(content, encoding="utf-8")
    with pytest.raises(ResultsError, match=r"data\.json: (not readable|found data format 2, expected 1)") as error:
        load_used_data(tmp_path)
    assert "\n" not in str(error.value)
    assert str(error.value).endswith("; remove it, and start the study again, which writes it anew")
