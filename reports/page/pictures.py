"""Pictures of a study as parts of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from reports.page.shown import ShownPicture, plain_id
from reports.page.svg import aspect, inline_svg


class Picture(Protocol):
    """A picture as the page needs it: ``svg`` is a whole document, ``name`` tells it apart within its study."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def caption(self) -> str: ...
    @property
    def svg(self) -> str: ...


WIDE = 2.0
"""Width over height from which a picture gets a line of its own."""

Draw = Callable[[Path], Sequence[Picture]]
"""From a results folder to its pictures."""


def every_picture(results: Path) -> Sequence[Picture]:
    """All that the records of the study in ``results`` allow.

    Raises:
        ResultsError, study.records.RecordError: as :func:`reports.pictures.draw_pictures`.
    """
    from reports.pictures import draw_pictures

    return draw_pictures(results).pictures


def shown_pictures(pictures: Iterable[Picture], prefix: str) -> tuple[ShownPicture, ...]:
    """The pictures of one study, in their order; ``prefix`` leads its ids in the page.

    Raises:
        ResultsError: a picture is not readable as SVG.
    """
    shown = []
    for picture in pictures:
        anchor = f"{prefix}picture-{plain_id(picture.name)}"
        svg = inline_svg(picture.svg, anchor, picture.title)
        shown.append(
            ShownPicture(
                anchor=anchor, title=picture.title, caption=picture.caption, svg=svg, is_wide=aspect(svg) > WIDE
            )
        )
    return tuple(shown)
