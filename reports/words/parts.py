"""The parts of a table's text as LaTeX, Markdown and HTML: escaped, so that any name can stand in any of them.

Plain text is in :mod:`reports.words.plain_text`.
"""

from __future__ import annotations

import re
from html import escape as escape_html_text

from reports.summary.labels import Detail, Label
from reports.summary.marks import Mark
from reports.words.latex_text import escape
from reports.words.plain_text import plain
from reports.words.prose import Marked, Part

_SYMBOLS = {"num_clusters": "K", "sigma_m": r"\sigma_m", "layers": "L"}
_BEST = " (best)"


def latex_part(part: Part) -> str:
    """``part`` as LaTeX in plain ASCII."""
    if isinstance(part, Label):
        prefix = rf"\emph{{{escape(part.prefix)}}}-" if part.prefix else ""
        details = ", ".join(latex_part(detail) for detail in part.details)
        return prefix + escape(part.name) + (f" ({details})" if details else "")
    if isinstance(part, Detail):
        if part.key in _SYMBOLS and part.value != "searched":
            value = re.sub(r"e([+-])0*(\d+)$", r" \\times 10^{\1\2}", part.value).replace("{+", "{")
            return f"${_SYMBOLS[part.key]} = {value}$"
        return escape(plain(part))
    if isinstance(part, Marked):
        return latex_marked(escape(part.words), part.mark)
    # Edges keep their space: parts stand one after the other.
    before, after = (" " if edge.isspace() else "" for edge in (part[:1], part[-1:]))
    return before + escape(part) + after


def latex_marked(words: str, mark: Mark) -> str:
    """``words``, bold if marked, and red if the best."""
    bold = words if mark is Mark.PLAIN else rf"\textbf{{{words}}}"
    return rf"\textcolor{{red}}{{{bold}}}" if mark is Mark.BEST else bold


def markdown_part(part: Part) -> str:
    """``part`` as GitHub's Markdown."""
    if isinstance(part, Label):
        prefix = f"*{escape_markdown(part.prefix)}*-" if part.prefix else ""
        details = ", ".join(markdown_part(detail) for detail in part.details)
        return prefix + escape_markdown(part.name) + (f" ({details})" if details else "")
    if isinstance(part, Marked):
        return markdown_marked(escape_markdown(part.words), part.mark)
    return escape_markdown(plain(part) if isinstance(part, Detail) else part)


def markdown_marked(words: str, mark: Mark) -> str:
    """``words`` in bold; red, which Markdown lacks, is written out: (best)."""
    if mark is Mark.PLAIN:
        return words
    return f"**{words}**" + (_BEST if mark is Mark.BEST else "")


def escape_markdown(words: str) -> str:
    """``words`` without a meaning in Markdown, white space of any kind as single spaces."""
    return re.sub(r"([\\`*_<>|~$#\[\]&{}])", r"\\\1", re.sub(r"\s+", " ", words))


def html_part(part: Part) -> str:
    """``part`` as HTML; what is marked has the class of its mark."""
    if isinstance(part, Label):
        prefix = f"<i>{escape_html(part.prefix)}</i>-" if part.prefix else ""
        details = ", ".join(html_part(detail) for detail in part.details)
        return prefix + escape_html(part.name) + (f" ({details})" if details else "")
    if isinstance(part, Marked):
        words = escape_html(part.words)
        return words if part.mark is Mark.PLAIN else f'<b class="{part.mark.value}">{words}</b>'
    return escape_html(plain(part) if isinstance(part, Detail) else part)


def escape_html(words: str) -> str:
    """``words`` as HTML shows them; control characters, which HTML does not allow, as their code point."""
    shown = "".join(f"[U+{ord(letter):04X}]" if _is_control(letter) else letter for letter in words)
    return escape_html_text(shown)


def _is_control(letter: str) -> bool:
    return (ord(letter) < 0x20 and letter not in "\t\n\r") or 0x7F <= ord(letter) < 0xA0
