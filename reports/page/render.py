"""From what the page shows to its one file: templates, style and script, all within."""

from __future__ import annotations

import base64
import hashlib

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reports.evidence.chosen import RANKING_RULE
from reports.page.content import Page
from reports.page.markup import NOTHING
from reports.words.parts import escape_html

ALARMS_SHOWN = 3
"""Findings of a kind in the banner; the section on the check has all."""


def render_page(page: Page) -> str:
    """The page as one HTML document that needs no other file and no network; the same page gives the same text."""
    environment = _environment()
    style, script = (_source(environment, name) for name in ("page.css", "page.js"))
    document = environment.get_template("page.html.jinja").render(
        page=page,
        style=style,
        script=script,
        script_hash=f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}",
        nothing=NOTHING,
        alarms_shown=ALARMS_SHOWN,
        ranking_rule=RANKING_RULE,
    )
    return document.lstrip()


def _source(environment: Environment, name: str) -> Markup:
    assert environment.loader is not None
    source, _, _ = environment.loader.get_source(environment, name)
    return Markup(source)  # a file of this package


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("reports.page"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        finalize=_escaped,
    )


def _escaped(value: object) -> object:
    """Text as HTML, control characters written out; Markup and numbers as they are."""
    return Markup(escape_html(value)) if isinstance(value, str) and not isinstance(value, Markup) else value
