# SPDX-License-Identifier: BSD-2-Clause
"""How pictures become text: templates, in which every value is escaped.

The text is both HTML and well-formed XML. A number in a template has one decimal at
most, None is nothing, and what no document may hold (control characters, lone
surrogates) is shown as a replacement character.
"""

import re
from textwrap import wrap
from typing import Any, Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

_NO_TEXT: Final = re.compile(
    "[^\t\n\r -~\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0001fffd]"
)


_LETTER: Final = 0.62
"""How wide a letter of a wide typeface is on average, for its size."""


class Picture(NamedTuple):
    """A picture with its words.

    Attributes
    ----------
    title : str
        What it is, for a heading.
    lead : str
        What it shows, in one sentence.
    body : Markup
        HTML with SVG in it, for the inside of an element of class ``pic``, under
        `STYLE`.
    """

    title: str
    lead: str
    body: Markup


def num(value: float) -> str:
    """Return a coordinate with at most one decimal.

    >>> num(3.0), num(0.25), num(-0.01)
    ('3', '0.2', '0')
    """
    short = f"{value:.1f}".removesuffix(".0")
    return "0" if short == "-0" else short


def fitting(words: str, width: float, size: float) -> str:
    """Return words, cut short where they would be wider than there is room.

    Parameters
    ----------
    width, size
        Of the room and of the letters, in one unit.

    >>> fitting("a-long-name-of-a-node", 60, 10), fitting("node1", 60, 10)
    ('a-long-n…', 'node1')
    """
    most = max(1, int(width / (_LETTER * size)))
    return (
        words if len(words) <= most else words[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"
    )


def wrapped(words: str, width: float, size: float, most: int) -> list[str]:
    """Return words as lines, at most some of them, the last one cut short.

    >>> wrapped("too little memory there", 60, 10, 2)
    ['too', 'little m…']
    """
    lines = wrap(words, max(1, int(width / (_LETTER * size))))
    return [*lines[: most - 1], *(fitting(" ".join(lines[most - 1 :]), width, size),)]


def _written(value: Any) -> Any:  # noqa: ANN401 - whatever a template names
    if value is None:
        return ""
    if isinstance(value, float):
        return num(value)
    if isinstance(value, str) and not isinstance(value, Markup):
        return _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", value)
    return value


_TEMPLATES: Final = Environment(
    loader=PackageLoader("moorage.pictures"),
    autoescape=True,
    finalize=_written,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def drawn(template: str, **values: Any) -> Markup:  # noqa: ANN401
    """Return a template of this package, filled in."""
    return Markup(_TEMPLATES.get_template(template).render(values))  # noqa: S704 - escaped
