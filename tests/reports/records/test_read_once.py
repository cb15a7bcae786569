"""Records may be a hundred thousand files: whatever is made of them, each is read once for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from made_studies import worked_study

from reports.check import check
from reports.evidence.explain import explain
from reports.page.assemble import build_page
from reports.pictures.material import load_material
from study import records
from study.record_files import read_singles


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(check, id="check"),
        pytest.param(lambda folder: explain(folder, "ZINC bi-GAT"), id="explain"),
        pytest.param(load_material, id="pictures"),
        pytest.param(lambda folder: build_page([folder], lambda _: ()), id="page"),
        pytest.param(
            lambda folder: build_page([folder, worked_study(folder.parent / "other")], lambda _: ()), id="several"
        ),
    ],
)
def test_every_record_is_read_once(
    make: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: Counter[Path] = Counter()

    def counted(paths: Sequence[Path], columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        read.update(paths)
        return read_singles(paths, columns)

    monkeypatch.setattr(records, "read_singles", counted)
    folder = worked_study(tmp_path / "study")
    make(folder)
    assert {path for path in read if path.parent.parent == folder} == set((folder / "records").iterdir())
    assert set(read.values()) == {1}
