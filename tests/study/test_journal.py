from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.journal import Journal, JournalEntry, JournalError

VALUES = st.dictionaries(
    st.text(max_size=8),
    st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=8), st.booleans()),
    max_size=3,
)
ENTRIES = st.lists(
    st.builds(JournalEntry, cell=st.text(max_size=8), number=st.integers(0, 9), key=st.text(max_size=8), values=VALUES),
    max_size=4,
)


def entry(number: int = 0, **values: Any) -> JournalEntry:
    return JournalEntry(cell="a-cell", number=number, key=f"key{number}", values=values)


def written(path: Path, entries: list[JournalEntry]) -> Journal:
    journal = Journal(path.parent)
    journal.begin()
    for line in entries:
        journal.append(line)
    return journal


@given(ENTRIES)
def test_entries_come_back_in_order_whatever_they_hold(entries: list[JournalEntry]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "000001.jsonl"
        assert list(written(path, entries).entries()) == entries
        assert (path.read_bytes().count(b"\n") if entries else 0) == len(entries)


@given(ENTRIES.filter(bool), st.data())
def test_a_last_line_cut_anywhere_is_left_out_and_repaired(entries: list[JournalEntry], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "000001.jsonl"
        journal = written(path, entries)
        whole = path.read_bytes()
        last = len(whole) - (whole[:-1].rfind(b"\n") + 1)
        path.write_bytes(whole[: len(whole) - data.draw(st.integers(1, last))])
        assert list(journal.entries()) == entries[:-1]
        journal = Journal(path.parent, attempt=2)
        journal.begin()
        journal.append(entry(7))
        assert list(journal.entries()) == [*entries[:-1], entry(7)]
        assert [path.name for path in path.parent.iterdir()] == ["000002.jsonl"]


def test_an_entry_is_on_disk_when_append_returns(tmp_path: Path) -> None:
    written(tmp_path / "000001.jsonl", [entry(0, sigma_m=0.25, num_clusters=3)])
    assert (tmp_path / "000001.jsonl").read_text() == (
        '{"cell":"a-cell","number":0,"key":"key0","values":{"sigma_m":0.25,"num_clusters":3}}\n'
    )


def test_a_study_that_never_began_has_an_empty_journal(tmp_path: Path) -> None:
    assert list(Journal(tmp_path / "journal").entries()) == []
    assert not (tmp_path / "journal").exists()


@pytest.mark.parametrize(
    "line", [b"not JSON", b'{"cell": "a"}', b'"a text"', b"[1, 2]", b'{"cell": "\xff"}', b'{"surplus": 1}', b""]
)
def test_another_line_that_is_no_entry_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "000001.jsonl"
    journal = written(path, [entry(0)])
    path.write_bytes(path.read_bytes() + line + b"\n")
    journal.append(entry(1))
    with pytest.raises(JournalError, match=rf"^{re.escape(str(path))}:2: not a journal entry"):
        list(journal.entries())
