"""docs/protocol.md against the presets, the tasks and the configurations of the paper's rows."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import product

import pytest
from told_pages import first_names, page, rows, section

from bimp.config import BACKBONES
from bimp.semantics import SETTINGS, Semantics, Setting, preset
from bimp.tasks import TASKS
from reports.published.rows import PaperRow, paper_rows
from study.smoothing_records import MEASURES

PART = re.compile(
    r"(?P<value>\S+)(?P<gated> in gated nets)?(?: in (?P<backbones>[\w, ]+))?(?: on (?P<datasets>[\w, ]+))?"
)
"""Of a cell of the presets: a value, and where it holds."""


def names(text: str | None) -> list[str]:
    return [] if text is None else re.split(r", | and ", text)


def told(cell: str, dataset: str, backbone: str, gated: bool) -> str | None:
    """The value that a cell gives such a network; None where it says nothing of it."""
    conditional, always = [], None
    for part in re.split(r", else |; ", cell.replace("`", "")):
        match = PART.fullmatch(part)
        assert match, part
        where = (names(match["backbones"]), names(match["datasets"]))
        if not match["gated"] and where == ([], []):
            always = match["value"]
        elif (gated or not match["gated"]) and all(
            one in some or not some for one, some in zip((backbone, dataset), where, strict=True)
        ):
            conditional.append(match["value"])
    return next(iter(conditional), always)


def text_of(value: Setting) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


@pytest.mark.parametrize(("column", "semantics"), [(1, "paper"), (2, "released")])
def test_both_presets_have_the_values_that_are_told(column: int, semantics: Semantics) -> None:
    cells = {row[0].strip("`"): row[column] for row in rows(section(page("protocol"), "## Paper and released"))}
    for dataset, backbone, gated in product(TASKS, BACKBONES, (False, True)):
        for name, value in preset(semantics, dataset=dataset, backbone=backbone, gated=gated).items():
            found = told(cells[name], dataset, backbone, gated)
            expected = text_of(SETTINGS[name].neutral) if found is None else text_of(number(found))
            assert text_of(value) == expected, (name, dataset, backbone, gated)


def number(text: str) -> Setting:
    try:
        return float(text)
    except ValueError:
        return text


def defaults_and_rows() -> Iterator[tuple[str, list[PaperRow]]]:
    of_dataset: defaultdict[str, list[PaperRow]] = defaultdict(list)
    for row in paper_rows():
        of_dataset[row.dataset.lower()].append(row)
    yield from of_dataset.items()


def test_defaults_are_those_of_the_vanilla_gcn_and_the_datasets_where_others_differ_are_told() -> None:
    batches, rates = [], []
    for dataset, of_paper in defaults_and_rows():
        protocol = TASKS[dataset].protocol
        default = (protocol.batch_size, protocol.learning_rate)
        assert {(row.batch_size, row.learning_rate) for row in of_paper if row.row == "GCN"} == {default}
        batches += [dataset] if len({row.batch_size for row in of_paper}) > 1 else []
        rates += [dataset] if len({row.learning_rate for row in of_paper}) > 1 else []
    text = " ".join(page("protocol").split())
    sentence = re.search(r"their batches differ on ([\w, ]+) \(.*?their learning rates on ([\w, ]+)\.", text)
    assert sentence
    assert [names(sentence[1]), names(sentence[2])] == [batches, rates]


def test_which_inputs_are_embedded_is_told() -> None:
    sentence = re.search(r"Node inputs are embedded \(([\w, ]+)\) or mapped linearly", page("protocol"))
    assert sentence
    assert names(sentence[1]) == [name for name, task in TASKS.items() if task.node_input == "embedding"]


def test_every_measure_of_over_smoothing_is_told() -> None:
    assert first_names(section(page("protocol"), "## Over-smoothing (`bimp.smoothing`)")) == list(MEASURES)
