# SPDX-License-Identifier: BSD-2-Clause
"""Markup as nested calls: what is not markup already is escaped.

The text is both HTML and well-formed XML, and plain ASCII, so that it reads the
same in whatever encoding a machine writes its files.
"""

import re
from collections.abc import Iterable
from html import escape
from typing import Final

_VOID: Final = frozenset({"col", "line", "meta", "path", "rect"})
_NO_TEXT: Final = re.compile(
    "[^\t\n\r -~\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0001fffd]"
)
"""What no document may hold: control characters, lone surrogates."""


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def text(words: str) -> Markup:
    """Return words as markup.

    >>> text('<b>&"'), text("3 \u2192 2"), text(Markup("<b>"))
    ('&lt;b&gt;&amp;&quot;', '3 &#8594; 2', '<b>')
    """
    if isinstance(words, Markup):
        return words
    clean = escape(_NO_TEXT.sub("\ufffd", words))
    return Markup(clean.encode("ascii", "xmlcharrefreplace").decode())


def el(name: str, /, *inside: str | None, **attributes: object) -> Markup:
    """Return an element; None is left out, as a child and as an attribute.

    >>> el("p", "a < b", class_="note", id=None)
    '<p class="note">a &lt; b</p>'
    """
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{pairs}/>")
    return Markup(f"<{name}{pairs}>{joined(inside)}</{name}>")


def joined(parts: Iterable[str | None], between: str = "") -> Markup:
    """Return parts one after the other."""
    return Markup(between.join(text(part) for part in parts if part is not None))


def num(value: float) -> str:
    """Return a coordinate with at most one decimal.

    >>> num(3.0), num(0.25), num(-0.01)
    ('3', '0.2', '0')
    """
    short = f"{value:.1f}".removesuffix(".0")
    return "0" if short == "-0" else short
