"""A study file: strictly read, checked as a whole, frozen. Format: docs/search_spaces.md."""

from study.spec.source import SpecError
from study.spec.study_file import load_study, read_study, study_text
from study.spec.study_spec import AshaSpec, ConfirmSpec, ResourcesSpec, SearchSpec, StudySpec

__all__ = [
    "AshaSpec",
    "ConfirmSpec",
    "ResourcesSpec",
    "SearchSpec",
    "SpecError",
    "StudySpec",
    "load_study",
    "read_study",
    "study_text",
]
