"""Escaping for LaTeX: every character prints, in plain ASCII, and none acts."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.summary.labels import Detail, Label
from reports.words.latex_text import escape
from reports.words.parts import latex_part


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("GCN (L 4)", "GCN (L 4)"),
        ("a_b & 100% #1", r"a\_b \& 100\% \#1"),
        ("{x}~^", r"\{x\}\textasciitilde{}\textasciicircum{}"),
        ("\\input $x$", r"\textbackslash{}input $\mathdollar$x$\mathdollar$"),
        ("a < b > c | d", r"a \textless{} b \textgreater{} c \textbar{} d"),
        ("[1]*", "{[}1]{*}"),
        ("a--b ''c'' ,,", "a-{}-b '{}'c'{}' ,{},"),
        ('"q" `q`', r"''q'' \texttt{\char96}q\texttt{\char96}"),
        ("Müller Erdős Çelik Ångström", r"M\"{u}ller Erd\H{o}s \c{C}elik \r{A}ngstr\"{o}m"),
        ("e\u0301", r"\'{e}"),
        ("straße ±", r"stra\ss{}e $\pm$"),
        ("σ 4 × 2", r"$\sigma$ 4 $\times$ 2"),  # noqa: RUF001
        ("图", "{[}U+56FE]"),
        ("\U0001f600", "{[}U+1F600]"),
        ("\x07\u200b", "{[}U+0007]{[}U+200B]"),
        ("two\n\n lines\t", "two lines"),
        ("", ""),
    ],
)
def test_escape(text: str, source: str) -> None:
    assert escape(text) == source


@given(st.text())
def test_no_character_acts(text: str) -> None:
    source = escape(text)
    assert source.isascii()
    assert source.isprintable()
    # What is left once commands of the table above are taken away holds nothing that LaTeX would act on.
    without_math = re.sub(r"\$(\\[A-Za-z]+|\^\{\\circ\})\$", "", source)
    without_commands = re.sub(r"\\(char96|[a-zA-Z]+|[{}_&%#\"'`^~=.])", "", without_math)
    assert not re.search(r"[\\$&%#_^~]", without_commands)


def test_a_cells_id_keeps_its_underscores() -> None:
    name = Label(prefix="bi", name="GCN", details=(Detail(key="cell", value="a-max_epochs_6"),))
    assert latex_part(name) == r"\emph{bi}-GCN (cell a-max\_epochs\_6)"
    setting = Label(prefix=None, name="GCN", details=(Detail(key="gcn_normalisation", value="symmetric"),))
    assert latex_part(setting) == "GCN (gcn normalisation symmetric)"


def test_a_part_keeps_the_space_at_its_edges() -> None:
    assert latex_part(" of a_b\n") == r" of a\_b "
    assert latex_part("x") == "x"
