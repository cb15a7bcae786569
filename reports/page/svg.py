"""A picture's SVG as a part of a page: ids of its own, nothing that loads or runs, as wide as the page allows."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping

from markupsafe import Markup

from reports.records.plan import ResultsError

_DROPPED = {"script", "style", "metadata", "foreignObject", "iframe", "set", "animate", "animateTransform", "a"}
_REFERENCE = re.compile(r"url\(\s*[\"']?#([^)\"']+)[\"']?\s*\)")
_RULE_OF_ALL = re.compile(r"^\s*\*\s*\{([^{}]*)\}\s*$")
_VIEW_BOX = re.compile(r'^<svg[^>]*\bviewBox="\S+ \S+ ([\d.]+) ([\d.]+)"')
_ID_LISTS = ("aria-labelledby", "aria-describedby")


def inline_svg(source: str, name: str, title: str) -> Markup:
    """``source`` (an SVG document) to stand within a page; ``name`` is unique there and leads all ids.

    What could run or load is left out; only references into the picture itself and embedded images stay. A stylesheet
    would reach the whole page, so its rule for ``*`` becomes the style of the root. The size gives way to the view box.

    Raises:
        ResultsError: ``source`` is no SVG document.
    """
    try:
        root = ElementTree.fromstring(source)
    except ElementTree.ParseError as error:
        raise ResultsError(f"picture {name}: not readable as SVG ({error}); draw it again") from error
    if _local(root.tag) != "svg":
        raise ResultsError(f"picture {name}: found <{_local(root.tag)}>, expected <svg>; draw it again")
    style = _style_of_all(root)
    _clean(root, name)
    width, height = root.attrib.pop("width", None), root.attrib.pop("height", None)
    if "viewBox" not in root.attrib and width and height:
        root.set("viewBox", f"0 0 {_number(width)} {_number(height)}")
    if style:
        root.set("style", style)
    root.set("role", "img")
    root.set("aria-label", title)
    root.tail = None
    return Markup(ElementTree.tostring(root, encoding="unicode"))  # serialised, hence escaped


def aspect(svg: str) -> float:
    """Width over height of a picture that :func:`inline_svg` made; 1 where it does not say."""
    found = _VIEW_BOX.search(svg)
    width, height = (float(found[1]), float(found[2])) if found else (1.0, 1.0)
    return width / height if height else 1.0


def _clean(element: ElementTree.Element, name: str) -> None:
    element.tag = _local(element.tag)
    element.attrib = _attributes(element.attrib, name)
    for child in list(element):
        # A comment's or an instruction's tag is a function.
        if not isinstance(child.tag, str) or _local(child.tag) in _DROPPED:
            element.remove(child)
        else:
            _clean(child, name)


def _attributes(found: Mapping[str, str], name: str) -> dict[str, str]:
    kept = {}
    for key, value in found.items():
        local = _local(key)
        if local == "href":
            if value.startswith("#"):
                kept[local] = f"#{name}-{value[1:]}"
            elif value.startswith(("data:image/png;", "data:image/jpeg;")):
                kept[local] = value
        elif local == "id":
            kept[local] = f"{name}-{value}"
        elif local in _ID_LISTS:
            kept[local] = " ".join(f"{name}-{word}" for word in value.split())
        elif not local.lower().startswith("on") and not key.startswith("{"):
            kept[local] = _REFERENCE.sub(lambda match: f"url(#{name}-{match[1]})", value)
    return kept


def _style_of_all(root: ElementTree.Element) -> str:
    sheets = (element.text or "" for element in root.iter() if isinstance(element.tag, str))
    rules = (_RULE_OF_ALL.match(sheet) for sheet in sheets if "{" in sheet)
    return "; ".join(" ".join(rule[1].split()).rstrip("; ") for rule in rules if rule)


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _number(length: str) -> str:
    return re.sub(r"[a-z%]+$", "", length.strip())
