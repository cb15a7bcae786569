"""What a key of ``space`` is sampled from: a range or a choice, perhaps on a condition."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from study.spec.source import value_text
from study.spec.strict import Strict, refused

V = TypeVar("V")
Kind = Literal["uniform", "log_uniform", "int", "log_int", "choice"]


def _pair(value: Any) -> Any:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise refused(value, "[low, high]")
    return value


def _ascending(bounds: tuple[Any, Any]) -> tuple[Any, Any]:
    if not bounds[0] < bounds[1]:
        raise refused(bounds, "low below high")
    return bounds


def _log_ascending(bounds: tuple[Any, Any]) -> tuple[Any, Any]:
    if not bounds[0] > 0:
        raise refused(bounds, "low above 0: the range is logarithmic")
    return _ascending(bounds)


def _filled(value: Any) -> Any:
    if not isinstance(value, list | tuple) or not value:
        raise refused(value, "a list of at least one value")
    return value


def different(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values, all different.

    Raises:
        PydanticCustomError: one of them stands twice.
    """
    for position, value in enumerate(values):
        if value in values[:position]:
            raise refused(values, f"different values: {value_text(value)} stands twice")
    return values


Bounds = Annotated[tuple[V, V], BeforeValidator(_pair), AfterValidator(_ascending)]
LogBounds = Annotated[tuple[V, V], BeforeValidator(_pair), AfterValidator(_log_ascending)]
Choices = Annotated[tuple[V, ...], BeforeValidator(_filled), AfterValidator(different)]


class Domain(Strict):
    """Exactly one kind of range or choice; ``when`` holds the values that other keys must have for it to be sampled."""

    when: dict[str, Any] = Field(default={})

    @model_validator(mode="after")
    def _check_one_kind(self) -> Domain:
        kinds = self.key_names()[:-1]
        given = [key for key in kinds if getattr(self, key) is not None]
        if len(given) != 1:
            raise refused(given or None, f"exactly one of {', '.join(kinds)}")
        return self

    @classmethod
    def key_names(cls) -> list[str]:
        """The known keys, the kinds of ranges first."""
        return [*(key for key in cls.model_fields if key != "when"), "when"]

    @property
    def kind(self) -> Kind:
        """Which of the ranges it is, or ``choice``."""
        kinds: tuple[Kind, ...] = ("uniform", "log_uniform", "int", "log_int", "choice")
        return next(kind for kind in kinds if getattr(self, kind, None) is not None)

    @property
    def bounds(self) -> tuple[Any, Any] | None:
        """Lowest and highest value, both included; None for a choice."""
        return None if self.kind == "choice" else getattr(self, self.kind)

    @property
    def choices(self) -> tuple[Any, ...] | None:
        """The values of a choice, or None."""
        return getattr(self, "choice", None)

    @property
    def is_continuous(self) -> bool:
        """Whether its values cannot be listed."""
        return self.kind in ("uniform", "log_uniform")


class ChoiceDomain(Domain, Generic[V]):
    """One of several words."""

    choice: Choices[V] | None = None


class IntDomain(Domain, Generic[V]):
    """A whole number of a range, evenly (``int``) or evenly in its logarithm (``log_int``), or one of several."""

    int: Bounds[V] | None = None
    log_int: LogBounds[V] | None = None
    choice: Choices[V] | None = None


class FloatDomain(Domain, Generic[V]):
    """A number of a range, evenly (``uniform``) or evenly in its logarithm (``log_uniform``), or one of several."""

    uniform: Bounds[V] | None = None
    log_uniform: LogBounds[V] | None = None
    choice: Choices[V] | None = None
