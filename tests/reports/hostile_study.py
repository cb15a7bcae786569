"""A study whose every name would break a page that does not escape it."""

from __future__ import annotations

from pathlib import Path

from made_studies import Cell, gated, runs, trial, vanilla, write_study

STUDY = "</title><script>window.hacked = 1</script> R&D"
CAPTION = "{{ 7 * 7 }} & <b onclick='window.hacked = 1'>\"bold\"</b> ]]> <!-- über 日本"
TITLE = "<img src=x onerror='window.hacked = 1'> Datensätze 日本"
CELL = "\"><script>window.hacked = 1</script>' a b"
REASON = "<script>window.hacked = 1</script> & loss is NaN"


def hostile_study(folder: Path) -> Path:
    """Two vanilla cells whose ids differ in a sign that no id of HTML may hold, and a gated one with a failed run."""
    first: Cell = vanilla("zinc", "gcn", dataset_title=TITLE, id=CELL)
    second: Cell = vanilla("zinc", "gat", dataset_title=TITLE, id=CELL.replace("'", '"'))
    third = gated("zinc", "gcn", dataset_title=TITLE, id="</details></section>")
    trials = [
        *runs(first, [0.4, 0.5, 0.4, 0.5]),
        *runs(second, [0.6, 0.7, 0.6, 0.7]),
        *runs(third, [0.1, 0.2, 0.1, 0.2])[:3],
        trial(third, 35, status="failed", reason=REASON),
    ]
    return write_study(folder, [first, second, third], trials, CAPTION, study=STUDY)
