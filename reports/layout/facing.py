"""Which vanilla cell a gated one faces: in the table, in comparisons, in the check and in pictures."""

from __future__ import annotations

from collections.abc import Sequence

from reports.summary.summarise import CellSummary


def vanilla_of(gated: CellSummary, vanillas: Sequence[CellSummary]) -> CellSummary | None:
    """The vanilla cell of the same backbone, semantics, layers and budget; None without one, or a single closest."""
    candidates = [vanilla for vanilla in vanillas if comparable(gated, vanilla)]
    closeness = [_closeness(gated, vanilla) for vanilla in candidates]
    greatest = max(closeness, default=None)
    closest = [vanilla for vanilla, value in zip(candidates, closeness, strict=True) if value == greatest]
    return closest[0] if len(closest) == 1 else None


def _closeness(gated: CellSummary, vanilla: CellSummary) -> tuple[int, int, int]:
    """In how much two comparable cells agree beside that; where the first are equal the second decides, and so on."""
    departures = set(gated.chosen.departures) ^ set(vanilla.chosen.departures)
    # A width that only follows from a budget agrees or differs by chance.
    planned = ("hidden_dim", "pos_enc_dim")
    return (
        sum(getattr(gated.chosen, key) == getattr(vanilla.chosen, key) for key in ("layers", "budget", "departures"))
        + sum(getattr(gated.cell, key) == getattr(vanilla.cell, key) for key in planned),
        -len(departures),
        len(set(gated.cell.other_settings or ()) & set(vanilla.cell.other_settings or ())),
    )


def comparable(gated: CellSummary, vanilla: CellSummary) -> bool:
    """Whether the two are arms of one comparison: of one backbone, semantics, depth and sort of size."""
    # Two cells that both search their depth are arms of one comparison, whichever depths they end up with.
    return (
        gated.cell.backbone == vanilla.cell.backbone
        and (gated.cell.hidden_dim is None) == (vanilla.cell.hidden_dim is None)
        and (_same(gated, vanilla, "semantics") or None in (gated.chosen.semantics, vanilla.chosen.semantics))
        and all(_same(gated, vanilla, key) for key in ("layers", "budget"))
    )


def _same(gated: CellSummary, vanilla: CellSummary, key: str) -> bool:
    chosen = getattr(gated.chosen, key)
    settled = chosen is not None and chosen == getattr(vanilla.chosen, key)
    return settled or bool(getattr(gated.cell, key) == getattr(vanilla.cell, key))
