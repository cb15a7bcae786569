"""Study files as they are read: strictly, and checked as a whole. Format: docs/search_spaces.md."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from study.spec.checks import check_study
from study.spec.source import SpecError, read_yaml, with_value
from study.spec.strict import first_error
from study.spec.study_spec import StudySpec, study_name


def load_study(path: Path) -> StudySpec:
    """The study in the file ``path``.

    Raises:
        SpecError: the file cannot be read, is not YAML, or describes no study that can be run.
    """
    return read_study(study_text(path), str(path))


def study_text(path: Path, name: str | None = None) -> str:
    """The text of the study in the file ``path``, under another ``name`` if one is given; the rest is as it was.

    Raises:
        SpecError: the file cannot be read or is not YAML, or ``name`` cannot be a study's.
    """
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        # Those of an object store have no words of the system's.
        missing = "No such file or directory" if isinstance(error, FileNotFoundError) else str(error)
        cause = error.strerror or missing
        raise SpecError(f"{path}: found no readable file ({cause}), expected a study in YAML") from error
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: found bytes that are not UTF-8, expected a study in YAML") from error
    if name is None:
        return text
    try:
        study_name(name)
    except PydanticCustomError as error:
        raise SpecError(f"--as: {error.message()}") from error
    # In quotes, as a name may be all digits.
    return with_value(text, str(path), "name", f'"{name}"')


def read_study(text: str, file: str = "study") -> StudySpec:
    """The study that ``text`` describes; ``file`` is its name in errors.

    Raises:
        SpecError: as :func:`load_study`.
    """
    given, source = read_yaml(text, file)
    try:
        spec = StudySpec.model_validate(given)
        check_study(spec)
    except ValidationError as error:
        raise first_error(error, source) from error
    spec._source = source
    return spec
