"""What the data behind a study's records holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reports.records.plan import ResultsError

DATA_FILE = "data.json"
DATA_FORMAT = 1

_MEND = "remove it, and start the study again, which writes it anew"


@dataclass(frozen=True, kw_only=True)
class UsedData:
    """A prepared dataset.

    Attributes:
        title: its name in a table.
        origin: one line: where graphs and splits come from.
        graphs: of all splits.
        split_graphs: name of a split and its graphs; of fold 0 where there are folds.
    """

    title: str
    origin: str
    graphs: int
    split_graphs: tuple[tuple[str, int], ...]


def load_used_data(results: Path) -> Mapping[str, UsedData]:
    """The datasets of a study by fingerprint; none of a study that an older version ran, which did not keep them.

    Raises:
        ResultsError: the file that holds them is not one of format 1.
    """
    path = results / DATA_FILE
    try:
        content = json.loads(path.read_bytes())
        if content["format"] != DATA_FORMAT:
            raise ResultsError(f"{path}: found data format {content['format']!r}, expected {DATA_FORMAT}; {_MEND}")
        return {fingerprint: _used(held) for fingerprint, held in content["datasets"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, ResultsError):
            raise
        raise ResultsError(f"{path}: not readable ({error!r}); {_MEND}") from error


def _used(held: Mapping[str, object]) -> UsedData:
    title, origin, graphs, splits = (held[name] for name in ("title", "origin", "graphs", "split_graphs"))
    if not isinstance(title, str) or not isinstance(origin, str):
        raise TypeError(f"found {title!r} and {origin!r}, expected title and origin in words")
    if not isinstance(graphs, int) or not isinstance(splits, dict):
        raise TypeError(f"found {graphs!r} and {splits!r}, expected a number of graphs, and one for each split")
    return UsedData(
        title=title,
        origin=origin,
        graphs=graphs,
        split_graphs=tuple((str(name), int(count)) for name, count in splits.items()),
    )
