"""The numbers of the paper's tables as texts: from LaTeX source cell by cell, and as they are shipped."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

from reports.published.rows import FOLDER, PAPER_TABLES

CAPTIONS = {
    "graph_level": "graph-level prediction tasks",
    "node_edge_level": "edge- and node-level prediction tasks",
    "placement": "across three network configurations",
    "small": "small graph-level classification tasks",
}
Printed = tuple[str, ...]
"""Table, dataset, row, layers, params, test mean and std, bold, red, train mean and std, epochs; as printed."""


def printed_rows(source: str) -> Iterator[Printed]:
    """Every model of the four result tables, read from the LaTeX source cell by cell."""
    for environment in re.findall(r"\\begin\{table\}.*?\\end\{table\}", source, flags=re.DOTALL):
        named = [table for table, words in CAPTIONS.items() if words in environment]
        if not named:
            continue
        dataset = "ZINC"  # the table of placements names its dataset in the caption alone
        for line in environment.split(r"\\"):
            heading = re.search(r"\\multicolumn\{12\}\{c\}\{(\w+)\}", line)
            dataset = heading.group(1) if heading else dataset
            if r"\pm" not in line:
                continue
            cells = [cell.strip() for cell in re.sub(r"\\(mid|h)(rule|line)\s*", "", line).split("&")]
            sides = (cells[:6], cells[6:]) if len(cells) == 12 else (cells[:6], [cells[0], *cells[6:]])
            for model, layers, params, test, train, epochs in sides:
                yield (
                    *(named[0], dataset, re.sub(r"\\emph\{(\w+)\}", r"\1", model), layers, params),
                    *re.findall(r"\d+\.\d+", test),
                    "yes" if r"\boldsymbol" in test else "no",
                    "yes" if r"\color{red}" in test else "no",
                    *re.findall(r"\d+\.\d+", train),
                    epochs,
                )


def shipped_rows() -> Iterator[Printed]:
    test = ("test_mean", "test_std", "bold", "red")
    columns = ("dataset", "row", "layers", "params_printed", *test, "train_mean", "train_std", "epochs")
    for table in PAPER_TABLES:
        for cells in csv.DictReader((FOLDER / f"{table}.csv").open(encoding="utf-8")):
            yield (table, *(cells[column] for column in columns))


def printed_datasets(source: str) -> Iterator[Printed]:
    """Every dataset of the two tables of datasets, read from LaTeX source cell by cell."""
    for line in re.findall(r"^ *(.*?(?:&\s*\$?-\$?|\(\d+\))) *\\\\ *$", source, flags=re.MULTILINE):
        cells = [cell.strip() for cell in line.split("&")][-6:]
        node, edge = (re.fullmatch(r"(.*) \((\d+)\)", cell) for cell in cells[4:])
        assert node
        yield (*cells[:4], *node.groups(), *(edge.groups() if edge else ("", "")))


def shipped_datasets() -> list[Printed]:
    columns = ("dataset", "graphs_printed", "nodes", "edges", "node_features", "node_dim", "edge_features", "edge_dim")
    rows = csv.DictReader((FOLDER / "datasets.csv").open(encoding="utf-8"))
    return [tuple(row[column] for column in columns) for row in rows]
