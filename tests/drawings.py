# SPDX-License-Identifier: BSD-2-Clause
"""Reading pictures: what is in them, and where it is."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from moorage.pictures.ink import Picture

BAD = "<b>&\"'</svg></style><script>alert(1)</script>"
"""A name that nobody should have."""


def parsed(picture: Picture) -> Element:
    """Return a picture as elements, which says that it is well-formed."""
    return ET.fromstring(f"<div>{picture.body}</div>")  # noqa: S314 - our own text


def words(element: Element) -> str:
    """Return all texts in an element."""
    return "".join(element.itertext())


def titles(root: Element) -> list[str]:
    """Return what can be pointed at in the drawings."""
    return [words(one) for one in root.iterfind(".//svg//g/title")]


Box = tuple[float, float, float, float]


def boxes(element: Element, x: float = 0.0, y: float = 0.0) -> Iterator[Box]:
    """Yield left, top, right and bottom of each rectangle and circle of a drawing."""
    move = re.match(r"translate\(([\d.]+) ([\d.]+)\)", element.get("transform", ""))
    if move:
        x, y = x + float(move[1]), y + float(move[2])
    if element.tag == "rect":
        left, top = x + float(element.get("x", 0)), y + float(element.get("y", 0))
        width, height = float(element.get("width", 0)), float(element.get("height", 0))
        yield left, top, left + width, top + height
    if element.tag == "circle":
        r, cx, cy = (float(element.get(name, 0)) for name in ("r", "cx", "cy"))
        yield x + cx - r, y + cy - r, x + cx + r, y + cy + r
    for child in element:
        yield from boxes(child, x, y)


def assert_inside(root: Element) -> None:
    """Check that no drawing has a shape outside its box."""
    for svg in root.iter("svg"):
        x, y, width, height = map(float, svg.get("viewBox", "").split())
        for left, top, right, bottom in boxes(svg):
            assert left >= x
            assert top >= y
            assert right <= x + width + 0.11
            assert bottom <= y + height + 0.11
