from __future__ import annotations

import json
import math
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.journal import Journal, JournalEntry, JournalError
from study.location import location
from study.record_files import KEY

SAMPLED = st.one_of(
    st.integers(-(2**63), 2**63),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.booleans(),
    st.none(),
)
VALUES = st.dictionaries(
    st.text(max_size=8),
    SAMPLED,
    max_size=3,
)
CELLS = st.text(min_size=1, max_size=8)
KEYS = st.from_regex(KEY, fullmatch=True)


def numbered(asked: list[tuple[str, str, dict[str, Any]]]) -> list[JournalEntry]:
    """Entries as cells ask for them: each cell's own from 0."""
    count: Counter[str] = Counter()
    entries = []
    for cell, key, values in asked:
        entries.append(JournalEntry(cell=cell, number=count[cell], key=key, values=values))
        count[cell] += 1
    return entries


ENTRIES = st.lists(st.tuples(st.sampled_from("ab") | CELLS, KEYS, VALUES), max_size=4).map(numbered)


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
        journal.append(entry(0))
        assert list(journal.entries()) == [*entries[:-1], entry(0)]
        assert [path.name for path in path.parent.iterdir()] == ["000002.jsonl"]


def test_an_entry_is_on_disk_when_append_returns(tmp_path: Path) -> None:
    written(tmp_path / "000001.jsonl", [entry(0, sigma_m=0.25, num_clusters=3)])
    assert (tmp_path / "000001.jsonl").read_text() == (
        '{"cell":"a-cell","number":0,"key":"key0","values":{"sigma_m":0.25,"num_clusters":3}}\n'
    )


def test_a_run_that_begins_while_the_journal_is_read_hides_no_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks how the study stands has listed the older journal, and the run removes it before it is read."""
    journal = written(tmp_path / "000001.jsonl", [entry(0), entry(1)])
    read, begun = Path.read_bytes, []

    def disturbed(path: Path) -> bytes:
        if not begun:
            begun.append(path.name)
            Journal(tmp_path, 2).begin()
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", disturbed)
    assert list(journal.entries()) == [entry(0), entry(1)]
    assert begun == ["000001.jsonl"]
    assert [path.name for path in tmp_path.iterdir()] == ["000002.jsonl"]


def test_in_an_object_store_lines_are_written_in_objects_of_so_many(
    bucket_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("study.journal.LINES_AN_OBJECT", 2)
    folder = location(f"{bucket_url}/journal")

    def lines_of(attempt: int) -> list[int]:
        objects = sorted(path.name for path in (folder / f"{attempt:06d}").iterdir())
        assert objects == [f"{number:06d}.jsonl" for number in range(len(objects))]
        return [len((folder / f"{attempt:06d}" / name).read_bytes().splitlines()) for name in objects]

    first = written(folder / "any", [entry(number) for number in range(5)])
    assert lines_of(1) == [2, 2, 1]
    first.append(entry(5))
    assert lines_of(1) == [2, 2, 2]
    second = Journal(folder, 2)
    second.begin()
    second.append(entry(6))
    assert lines_of(2) == [1]
    assert [line.number for line in Journal(folder, 3).entries()] == list(range(7))


def test_a_study_that_never_began_has_an_empty_journal(tmp_path: Path) -> None:
    assert list(Journal(tmp_path / "journal").entries()) == []
    assert not (tmp_path / "journal").exists()


GOOD = {"cell": "a-cell", "number": 1, "key": "key1", "values": {"sigma_m": 0.25}}


def with_a_second_line(folder: Path, line: bytes) -> Path:
    """A journal of three lines, of which the second is another than was written."""
    folder.mkdir(exist_ok=True)
    path = folder / "000001.jsonl"
    path.write_bytes(entry(0).line() + line + b"\n" + entry(2).line())
    return path


def trouble_of(path: Path) -> str:
    """What is said of a journal's second line, by who reads and by who goes on; both leave it as it is."""
    before = path.read_bytes()
    with pytest.raises(JournalError) as read:
        list(Journal(path.parent).entries())
    with pytest.raises(JournalError) as taken:
        Journal(path.parent, attempt=2).begin()
    assert str(read.value) == str(taken.value)
    assert [found.name for found in path.parent.iterdir()] == [path.name], "nothing was taken over"
    assert path.read_bytes() == before
    start = f"{path}:2: "
    assert str(read.value).startswith(start)
    assert "\n" not in str(read.value)
    return str(read.value).removeprefix(start)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"not JSON", "not readable as JSON (expected ident at character 2)"),
        (b"", "not readable as JSON (EOF while parsing a value at character 0)"),
        (b"\0\0", "not readable as JSON (expected value at character 1)"),
        (b'{"cell": "\xff"}', "not readable as JSON (invalid unicode code point at character 11)"),
        (b"[" * 100_000, "not readable as JSON (recursion limit exceeded at character 202)"),
        (b'{"number": ' + b"9" * 5000 + b"}", "not readable as JSON (number out of range at character 4313)"),
        (b'{"cell": "a"} {}', "not readable as JSON (trailing characters at character 15)"),
        (b'"a text"', "found 'a text', expected an object"),
        (b"[1, 2]", "found [1, 2], expected an object"),
        (b"null", "found None, expected an object"),
        (b"{}", "cell: found nothing, expected a value"),
    ],
)
def test_a_line_that_is_no_mapping_of_json_is_named(tmp_path: Path, line: bytes, told: str) -> None:
    path = with_a_second_line(tmp_path, line)
    assert trouble_of(path) == f"{told}; put the line right, or start in another folder"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"cell": 3}, "cell: found 3, expected a valid string"),
        ({"cell": ["a-cell"]}, "cell: found ['a-cell'], expected a valid string"),
        ({"cell": ""}, "cell: found '', expected the id of a cell"),
        ({"number": "1"}, "number: found '1', expected a valid integer"),
        ({"number": 1.0}, "number: found 1.0, expected a valid integer"),
        ({"number": True}, "number: found True, expected a valid integer"),
        ({"number": math.nan}, "number: found nan, expected a valid integer"),
        ({"number": -1}, "number: found -1, expected greater than or equal to 0"),
        ({"key": None}, "key: found None, expected a valid string"),
        ({"key": "../key1"}, "key: found '../key1', expected letters, digits, - and _ alone"),
        ({"key": "x y" * 40}, f"key: found '{('x y' * 40)[:59]}..., expected letters, digits, - and _ alone"),
        ({"values": None}, "values: found None, expected an object"),
        ({"values": [1]}, "values: found [1], expected an object"),
        ({"values": {"a": math.nan}}, "values.a: found nan, expected a finite number, a text, true, false or null"),
        ({"values": {"a": -math.inf}}, "values.a: found -inf, expected a finite number, a text, true, false or null"),
        ({"values": {"a": [2, 4]}}, "values.a: found [2, 4], expected a finite number, a text, true, false or null"),
        ({"values": {"a": {}}}, "values.a: found {}, expected a finite number, a text, true, false or null"),
        ({"kind": "search"}, "kind: found 'search', expected no such key"),
    ],
)
def test_a_value_that_no_entry_has_is_named_with_its_key(tmp_path: Path, changed: dict[str, Any], told: str) -> None:
    path = with_a_second_line(tmp_path, json.dumps({**GOOD, **changed}).encode())
    assert trouble_of(path) == f"{told}; put the line right, or start in another folder"


@pytest.mark.parametrize("key", sorted(GOOD))
def test_a_key_that_is_missing_is_named(tmp_path: Path, key: str) -> None:
    path = with_a_second_line(tmp_path, json.dumps({name: GOOD[name] for name in GOOD if name != key}).encode())
    assert trouble_of(path) == f"{key}: found nothing, expected a value; put the line right, or start in another folder"


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (
            0,
            "number: found 0, expected 1, the next of cell a-cell; put it right, or remove it if it stands there twice",
        ),
        (2, "number: found 2, expected 1, the next of cell a-cell; put it right, or what is missing before it"),
    ],
)
def test_a_line_that_stands_there_twice_or_is_missing_is_told(tmp_path: Path, number: int, told: str) -> None:
    path = with_a_second_line(tmp_path, json.dumps({**GOOD, "number": number}).encode())
    assert trouble_of(path) == f"{told}, or start in another folder"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*GOOD, "kind"]), JSON).map(lambda changed: {**GOOD, **changed}) | JSON)
def test_whatever_json_a_line_is_it_is_an_entry_or_an_error_of_one_line(found: Any) -> None:
    line = json.dumps(found).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "000001.jsonl"
        path.write_bytes(entry(0).line() + line + b"\n")
        told = None
        try:
            _, read = Journal(Path(folder)).entries()
        except JournalError as error:
            told = str(error)
    if told is None:
        assert read == JournalEntry(**found), "nothing was converted"
        assert json.loads(read.line()) == found
    else:
        assert told.startswith(f"{path}:2: ")
        assert len(told.splitlines()) == 1


@given(st.binary(max_size=40))
def test_whatever_bytes_follow_the_last_whole_line_they_are_left_out(cut: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "000001.jsonl").write_bytes(entry(0).line() + cut.replace(b"\n", b""))
        assert list(Journal(Path(folder)).entries()) == [entry(0)]


def test_lines_of_older_versions_and_of_an_editor_of_another_system_are_read(tmp_path: Path) -> None:
    # The first is as version 2 of the records had them; the form has not changed since the first journal.
    lines = (
        b'{"cell":"digits-gcn-none-L2-5k","number":0,"key":"735ef9bd399d32684d64","values":{"learning_rate":0.0011}}\n'
        b'{"cell":"digits-gcn-none-L2-5k", "number": 1, "key":"0793e5c3f75c0efd469f", "values":{}}\r\n'
    )
    (tmp_path / "000003.jsonl").write_bytes(lines)
    first, second = Journal(tmp_path).entries()
    assert first == JournalEntry(
        cell="digits-gcn-none-L2-5k", number=0, key="735ef9bd399d32684d64", values={"learning_rate": 0.0011}
    )
    assert (second.number, second.values) == (1, {})


@pytest.mark.parametrize(
    "name",
    [
        "notes.txt",
        "notes.jsonl",
        "000001 copy.jsonl",
        "000001.jsonl.bak",
        "000000.jsonl~",
        "1.jsonl",
        "-00001.jsonl",
        "٠٠٠٠٠٩.jsonl",
        "000001/notes.txt",
        "000001/deeper/000000.jsonl",
        "000009/000000.jsonl",
        "old/000009.jsonl",
        "Thumbs.db",
    ],
)
def test_a_file_that_is_no_journal_is_neither_read_nor_touched(tmp_path: Path, name: str) -> None:
    journal = written(tmp_path / "000001.jsonl", [entry(0)])
    foreign = tmp_path / name
    foreign.parent.mkdir(exist_ok=True, parents=True)
    foreign.write_bytes(entry(5).line() + b"\0\xff\n")
    assert list(journal.entries()) == [entry(0)]
    later = Journal(tmp_path, attempt=2)
    later.begin()
    later.append(entry(1))
    assert list(later.entries()) == [entry(0), entry(1)]
    assert foreign.read_bytes() == entry(5).line() + b"\0\xff\n"
    assert not (tmp_path / "000001.jsonl").exists()
