"""Pictures within a page: no two share an id, and nothing of them runs, loads or reaches the page."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from reports import ResultsError
from reports.page.svg import aspect, inline_svg

SOURCE = """<?xml version="1.0"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="20pt" height="10pt">
 <metadata><x/></metadata>
 <style type="text/css">*{stroke-linejoin: round; stroke-linecap: butt}</style>
 <script>alert(1)</script>
 <!-- a remark -->
 <defs><path id="dot" d="M0 0"/><clipPath id="clip"><rect width="1" height="1"/></clipPath></defs>
 <g clip-path="url(#clip)" style="clip-path: url('#clip'); fill: #000" onclick="alert(1)">
  <use xlink:href="#dot"/><use href="#dot"/><use href="http://elsewhere/x.svg#dot"/>
  <image xlink:href="data:image/png;base64,AAAA"/><image href="file:///etc/passwd"/>
  <a href="javascript:alert(1)"><text>x</text></a>
  <text>1 &lt; 2 &amp; &quot;3&quot;</text>
 </g>
</svg>"""


def test_ids_and_all_that_refers_to_them_get_the_name_of_the_picture() -> None:
    root = ElementTree.fromstring(inline_svg(SOURCE, "one", "A title"))
    assert [e.get("id") for e in root.iter() if e.get("id")] == ["one-dot", "one-clip"]
    group = root.find("g")
    assert group is not None
    assert group.attrib == {
        "clip-path": "url(#one-clip)",
        "style": "clip-path: url(#one-clip); fill: #000",
    }
    assert [use.attrib for use in root.iter("use")] == [{"href": "#one-dot"}, {"href": "#one-dot"}, {}]


def test_what_runs_or_loads_is_left_out() -> None:
    words = inline_svg(SOURCE, "one", "A title")
    root = ElementTree.fromstring(words)
    assert {e.tag for e in root.iter()} == {"svg", "defs", "path", "clipPath", "rect", "g", "use", "image", "text"}
    assert [image.attrib for image in root.iter("image")] == [{"href": "data:image/png;base64,AAAA"}, {}]
    assert "alert" not in words
    assert "passwd" not in words
    assert [text.text for text in root.iter("text")] == ['1 < 2 & "3"']


def test_the_picture_is_as_wide_as_its_place_and_keeps_its_shape() -> None:
    root = ElementTree.fromstring(inline_svg(SOURCE, "one", 'A "title" <b>'))
    assert (root.get("viewBox"), root.get("width"), root.get("height")) == ("0 0 20 10", None, None)
    assert (root.get("role"), root.get("aria-label")) == ("img", 'A "title" <b>')
    assert aspect(inline_svg(SOURCE, "one", "A title")) == 2
    assert root.get("style") == "stroke-linejoin: round; stroke-linecap: butt"


@pytest.mark.parametrize("source", ["", "no svg", "<html/>", SOURCE[:-4]])
def test_other_text_is_an_error(source: str) -> None:
    with pytest.raises(ResultsError, match=r"^picture one: .*; draw it again$"):
        inline_svg(source, "one", "A title")


def test_two_pictures_of_matplotlib_stand_side_by_side(tmp_path: Path) -> None:
    figure = Figure()
    figure.add_subplot().plot([1, 2], [3, 4], label="a < b & c")
    path = tmp_path / "figure.svg"
    figure.savefig(path)
    source = path.read_text(encoding="utf-8")
    ids = [
        {e.get("id") for e in ElementTree.fromstring(inline_svg(source, name, "t")).iter() if e.get("id")}
        for name in ("one", "two")
    ]
    assert len(ids[0]) == len(ids[1]) > 10
    assert not ids[0] & ids[1]
    words = inline_svg(source, "one", "t")
    references = {e.get("href", "") for e in ElementTree.fromstring(words).iter("use")}
    assert references
    assert {reference[1:] for reference in references} <= ids[0]
