"""The configuration of a trial as its record holds it, typed and whole: to build its network again, or to run it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from bimp.config import ModelConfig, TrainConfig, TrialConfig
from bimp.tasks import TASKS
from study.records import RecordError, TrialRecord
from study.typed_json import TypedJsonError, typed_json

_PARTS: tuple[tuple[str, type], ...] = (("model", ModelConfig), ("train", TrainConfig))


def recorded_configuration(record: TrialRecord) -> TrialConfig:
    """What ``record`` says of its trial.

    Raises:
        RecordError: it lacks a setting, has one that this version does not know, or a value that none can have.
    """
    try:
        config = typed_json(TrialConfig, record.config_json.encode())
    except TypedJsonError as error:
        raise _refusal(record, str(error)) from error
    unknown = _unknown_settings(json.loads(record.config_json))
    if unknown:
        raise _refusal(record, f"found {', '.join(unknown)}, which this version does not know")
    if config.dataset not in TASKS:
        raise _refusal(record, f"dataset: found {config.dataset!r}, expected one of {', '.join(TASKS)}")
    return config


def _unknown_settings(plain: Mapping[str, Any]) -> list[str]:
    known = {f"{part}.{entry.name}" for part, kind in _PARTS for entry in fields(kind)}
    return [name for part, _ in _PARTS for name in (f"{part}.{key}" for key in plain[part]) if name not in known]


def _refusal(record: TrialRecord, cause: str) -> RecordError:
    return RecordError(
        f"trial {record.key}: config_json: {cause}; read it with the version of this project that wrote it, or remove "
        "the record and run the study again"
    )
