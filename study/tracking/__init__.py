"""MLflow as a mirror of the records: it can be rebuilt from them at any time, and no trial waits for it."""

from study.tracking.address import (
    MirrorError,
    default_tracking_uri,
    masked,
    masked_text,
    own_database,
    require_tracking_uri,
    to_fill_in,
    told_error,
    ui_command,
    ui_page,
)
from study.tracking.loop import MirrorThread
from study.tracking.mirror import MlflowMirror
from study.tracking.runs import mirror_errors

__all__ = [
    "MirrorError",
    "MirrorThread",
    "MlflowMirror",
    "default_tracking_uri",
    "masked",
    "masked_text",
    "mirror_errors",
    "own_database",
    "require_tracking_uri",
    "to_fill_in",
    "told_error",
    "ui_command",
    "ui_page",
]
