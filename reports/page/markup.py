"""How the page writes the parts of a table: as HTML, escaped, each number a link to its evidence."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from reports.layout.columns import columns
from reports.layout.result_table import Entry
from reports.summary.marks import Mark
from reports.words.parts import html_part
from reports.words.prose import Part

NOTHING = "–"  # noqa: RUF001
_HEARD = {Mark.BETTER: " (better than vanilla)", Mark.BEST: " (best)"}


class PageMarkup:
    """A :class:`reports.layout.columns.Markup` whose numbers link to the element with the id ``evidence``, if any."""

    def __init__(self, evidence: str | None = None) -> None:
        self._evidence = evidence
        self.dash: str = self._linked(Markup('<span class="none">{}</span>').format(NOTHING))

    def part(self, part: Part) -> str:
        """A piece of text; the names of models have their prefix in italics."""
        return html_part(part)

    def spread(self, mean: str, std: str, mark: Mark) -> str:
        """``mean`` ± ``std`` under its mark, which a screen reader hears in words."""
        number = Markup("{} ± {}").format(mean, std)
        if mark is not Mark.PLAIN:
            number = Markup('<b class="{}">{}<span class="heard">{}</span></b>').format(
                mark.value, number, _HEARD[mark]
            )
        return self._linked(number)

    def _linked(self, words: Markup) -> Markup:
        if self._evidence is None:
            return words
        return Markup('<a class="number" href="#{}">{}</a>').format(self._evidence, words)


def written(parts: Sequence[Part]) -> Markup:
    """The parts of a caption or note, one after the other, without links."""
    markup = PageMarkup()
    return Markup("").join(Markup(markup.part(part)) for part in parts)  # escaped part by part


def side(entry: Entry | None, evidence: str | None) -> tuple[Markup, ...]:
    """One side of a row of the paper's table, its numbers linked to ``evidence``."""
    return tuple(Markup(cell) for cell in columns(entry, PageMarkup(evidence)))  # escaped part by part
