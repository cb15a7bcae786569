"""Tables from the records of a study: loads neither torch nor Ray nor MLflow."""

from reports.plan import ResultsError
from reports.tables import TableFiles, write_tables
from reports.terminal import render_terminal

__all__ = ["ResultsError", "TableFiles", "render_terminal", "write_tables"]
