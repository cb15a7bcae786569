from __future__ import annotations

from pathlib import Path

import pytest

from study.plan import StudyPlan, plan, plan_json
from study.spec import load_study
from study.spec.source import path_text, read_yaml

FOLDER = Path(__file__).parents[2] / "search_spaces"
FILES = sorted(FOLDER.glob("*.yaml"))
DEMONSTRATIONS = ("quickstart", "tiny", "zinc_smoke")
"""What they show is that everything works; the others are planned in test_paper_studies.py."""


def planned(name: str) -> StudyPlan:
    return plan(load_study(FOLDER / f"{name}.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_shipped_file_is_a_study_of_its_name(file: Path) -> None:
    spec = load_study(file)
    assert spec.name == file.stem
    assert spec.caption


@pytest.mark.parametrize("name", [*DEMONSTRATIONS, "zinc_100k"])
def test_networks_keep_to_their_budget(name: str) -> None:
    assert all(cell.params.high <= (cell.setting("budget") or 0) for cell in planned(name).cells)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_key_of_a_shipped_file_has_a_comment_beside_it(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    keys = read_yaml(text, file.name)[1].lines
    bare = [path_text(path) for path, line in keys.items() if path and "#" not in lines[line - 1]]
    # A caption is a text itself; the entries of a commented list may speak for themselves.
    assert [path for path in bare if path != "caption" and not path.endswith("]")] == []


def test_quickstart_is_the_demonstration_of_four_cells() -> None:
    cells = plan_json(planned("quickstart"))
    assert [cell["id"] for cell in cells] == [
        "digits-gcn-none-L4-100k",
        "digits-gcn-boosting-L4-100k",
        "digits-gated_gcn-none-L4-100k",
        "digits-gated_gcn-boosting-L4-100k",
    ]
    assert [list(cell["searched"]) for cell in cells] == 2 * [
        ["learning_rate"],
        ["sigma_m", "num_clusters", "learning_rate"],
    ]
    assert all(cell["seeds"] == [41, 95, 12, 35] and cell["rungs"] for cell in cells)


def test_zinc_100k_follows_the_benchmarks_protocol() -> None:
    # 1,000 epochs, of which every power of three times 20 is a rung.
    assert {(cell.max_epochs, cell.rungs) for cell in planned("zinc_100k").cells} == {(1000, (20, 60, 180, 540))}


def test_zinc_smoke_is_tiny() -> None:
    plan_ = planned("zinc_smoke")
    assert [cell.id for cell in plan_.cells] == ["zinc-gcn-none-L2-10k", "zinc-gcn-boosting-L2-10k"]
    assert {cell.max_epochs for cell in plan_.cells} == {3}


def test_enzymes_100k_searches_on_one_fold_and_confirms_on_ten() -> None:
    cells = planned("enzymes_100k").cells
    assert {(cell.search_fold, cell.folds, cell.seeds) for cell in cells} == {(0, tuple(range(10)), (41,))}
    with_heads = [cell for cell in cells if "heads" in {entry.key for entry in cell.space.parameters}]
    assert {cell.backbone for cell in with_heads} == {"gat"}
    assert len(with_heads) == 4
