"""Which layers of a network carry a gate."""

from __future__ import annotations

from typing import Literal

from bimp.config.requirements import ConfigError

NamedPlacement = Literal["none", "boosting", "interleaved", "dense"]
Placement = NamedPlacement | tuple[int, ...]


def gated_layers(placement: Placement, layers: int) -> tuple[int, ...]:
    """Positions, counted from 1, of the layers that carry a gate (paper, section 3.3 and figure S1).

    ``boosting`` gates layer 2, ``interleaved`` the even layers, ``dense`` all; a tuple names them.

    Raises:
        ConfigError: no such placement, an explicit layer that lies outside ``1..layers`` or stands twice, a tuple
            that names none, or a placement other than ``none`` that gates no layer of so shallow a network.
    """
    if isinstance(placement, tuple):
        outside = [layer for layer in placement if not 1 <= layer <= layers]
        if outside or not placement or len(set(placement)) != len(placement):
            raise ConfigError(
                "placement", f"found layers {list(placement)}, expected different layers from 1 to {layers}"
            )
        return tuple(sorted(placement))
    positions = {
        "none": (),
        "boosting": (2,) if layers >= 2 else (),
        "interleaved": tuple(range(2, layers + 1, 2)),
        "dense": tuple(range(1, layers + 1)),
    }
    if not isinstance(placement, str) or placement not in positions:
        raise ConfigError(
            "placement",
            f"found {placement!r}, expected one of {', '.join(positions)} or a tuple of layers such as (2, 4)",
        )
    if placement != "none" and not positions[placement]:
        raise ConfigError("placement", f"{placement!r} gates no layer of a network of {layers}; expected layers >= 2")
    return positions[placement]
