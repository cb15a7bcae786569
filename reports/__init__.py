"""Tables from the records of a study: loads neither torch nor Ray nor MLflow."""

from reports.records.plan import ResultsError
from reports.tables.write import TableFiles, write_tables

__all__ = ["ResultsError", "TableFiles", "write_tables"]
