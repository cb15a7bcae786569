"""What a value of a configuration must be, and the error that says so."""

from __future__ import annotations

from collections.abc import Mapping

from bimp.semantics import Scope


class ConfigError(ValueError):
    """A configuration that no model or training can be built from; names the key and what was expected."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(f"{key}: {message}")
        self.key = key
        self.message = message


def require_meaning(scopes: Mapping[str, Scope], settings: object, backbone: str, gated: bool) -> None:
    """One network has one configuration: a setting that means nothing in it has its neutral value.

    Args:
        scopes: of the attributes of ``settings`` to check.
        settings: a part of a configuration.
        backbone: of the network.
        gated: whether one of its layers is.

    Raises:
        ConfigError: it has another.
    """
    for key, scope in scopes.items():
        value = getattr(settings, key)
        if value != scope.neutral and not scope.holds(backbone, gated):
            where = "a network without a gate" if scope.backbone in (None, backbone) else backbone
            raise ConfigError(key, f"found {value!r}, expected {scope.neutral!r}: it means nothing in {where}")


def require_choice(key: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise ConfigError unless ``value`` of ``key`` is one of ``choices``."""
    if value not in choices:
        raise ConfigError(key, f"found {value!r}, expected one of {', '.join(choices)}")


def require_above_zero(key: str, value: float | None) -> None:
    """Raise ConfigError unless ``value`` of ``key`` is a number above 0."""
    if value is None or not value > 0:
        raise ConfigError(key, f"found {value}, expected a number above 0")


def require_at_least_one(key: str, value: int | None) -> None:
    """Raise ConfigError unless ``value`` of ``key`` is a whole number of 1 or more."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigError(key, f"found {value!r}, expected a whole number of 1 or more")
