"""Tables from the records of a study: loads neither torch nor Ray nor MLflow."""

from reports.records.plan import ResultsError
from reports.tables.terminal import render_terminal
from reports.tables.write import TableFiles, write_tables

__all__ = ["ResultsError", "TableFiles", "render_terminal", "write_tables"]
