"""Any text as LaTeX source in plain ASCII, so that it compiles whatever the document's encoding and fonts."""

from __future__ import annotations

import unicodedata

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "_": r"\_",
    "&": r"\&",
    "%": r"\%",
    "$": r"$\mathdollar$",
    "#": r"\#",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\texttt{\char96}",
    '"': "''",
    # After the end of a row these two would be read as its options.
    "[": "{[}",
    "*": "{*}",
}
_ACCENTS = {
    "\u0300": "`",
    "\u0301": "'",
    "\u0302": "^",
    "\u0303": "~",
    "\u0304": "=",
    "\u0306": "u",
    "\u0307": ".",
    "\u0308": '"',
    "\u030a": "r",
    "\u030b": "H",
    "\u030c": "v",
    "\u0323": "d",
    "\u0327": "c",
    "\u0331": "b",
}
_SYMBOLS = {
    "ß": r"\ss{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "œ": r"\oe{}",
    "Œ": r"\OE{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
    "ı": r"\i{}",  # noqa: RUF001
    "‐": "-",  # noqa: RUF001
    "–": r"\textendash{}",  # noqa: RUF001
    "—": r"\textemdash{}",
    "‘": r"\textquoteleft{}",  # noqa: RUF001
    "’": r"\textquoteright{}",  # noqa: RUF001
    "“": r"\textquotedblleft{}",
    "”": r"\textquotedblright{}",
    "…": r"\ldots{}",
    "±": r"$\pm$",
    "×": r"$\times$",  # noqa: RUF001
    "°": r"$^{\circ}$",
    "→": r"$\to$",
    "←": r"$\leftarrow$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≠": r"$\neq$",
    "≈": r"$\approx$",
    "∞": r"$\infty$",
    "µ": r"$\mu$",
}
# Letters that look Latin (omicron, most capitals) have no command of their own and fall to their code point.
_GREEK_NAMES = {
    "alpha": "α",  # noqa: RUF001
    "beta": "β",
    "gamma": "γ",  # noqa: RUF001
    "delta": "δ",
    "epsilon": "ε",
    "zeta": "ζ",
    "eta": "η",
    "theta": "θ",
    "iota": "ι",  # noqa: RUF001
    "kappa": "κ",
    "lambda": "λ",
    "mu": "μ",
    "nu": "ν",  # noqa: RUF001
    "xi": "ξ",
    "pi": "π",
    "rho": "ρ",  # noqa: RUF001
    "varsigma": "ς",
    "sigma": "σ",  # noqa: RUF001
    "tau": "τ",
    "upsilon": "υ",  # noqa: RUF001
    "phi": "φ",
    "chi": "χ",
    "psi": "ψ",
    "omega": "ω",
    "Gamma": "Γ",
    "Delta": "Δ",
    "Theta": "Θ",
    "Lambda": "Λ",
    "Xi": "Ξ",
    "Pi": "Π",
    "Sigma": "Σ",
    "Phi": "Φ",
    "Psi": "Ψ",
    "Omega": "Ω",
}
_GREEK = {letter: rf"$\{name}$" for name, letter in _GREEK_NAMES.items()}
_KNOWN = _SPECIAL | _SYMBOLS | _GREEK


def escape(text: str) -> str:
    """``text`` as LaTeX source that prints it; white space of any kind becomes single spaces.

    Accented Latin letters, Greek and some symbols become commands of LaTeX itself; any other character outside
    ASCII, and control characters, are printed as their code point (``[U+4E2D]``), which every font can.
    """
    escaped = ""
    previous = ""
    for character in unicodedata.normalize("NFC", " ".join(text.split())):
        # Fonts join these with their like: two hyphens to a dash, two apostrophes to a quotation mark.
        escaped += "{}" if character == previous and character in "-'," else ""
        escaped += _escape_character(character)
        previous = character
    return escaped


def _escape_character(character: str) -> str:
    if character in _KNOWN:
        return _KNOWN[character]
    if " " <= character <= "~":
        return character
    base, *accents = list(unicodedata.normalize("NFD", character))
    if len(accents) == 1 and accents[0] in _ACCENTS and base.isascii() and base.isalpha():
        return rf"\{_ACCENTS[accents[0]]}{{{base}}}"
    return f"{{[}}U+{ord(character):04X}]"
