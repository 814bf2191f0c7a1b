# SPDX-License-Identifier: BSD-2-Clause
"""What docstrings say, for who reads documents in place of code."""

import inspect
import re
from collections.abc import Iterator


def plain(text: str) -> str:
    """Return a docstring's text with Markdown's code marks, on one line."""
    text = re.sub(r":\w+:`~?\.?(?:moorage\.)?([^`]*)`", r"`\1`", text)
    return " ".join(text.replace("``", "`").split())


def about(thing: object) -> str:
    """Return the first paragraph of a docstring, without its full stop."""
    first = (inspect.getdoc(thing) or "").split("\n\n")[0]
    return plain(first).removesuffix(".")


def attributes(kind: type) -> dict[str, str]:
    """Return what the section Attributes of a class and its parents says, by name."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        doc = inspect.cleandoc(one.__doc__ or "")
        section = re.search(r"Attributes\n-+\n(.*?)(?:\n\n\w+\n---|\Z)", doc, re.DOTALL)
        if section:
            found |= _entries(section[1])
    return found


def _entries(section: str) -> Iterator[tuple[str, str]]:
    names, words = list[str](), list[str]()
    for line in [*section.splitlines(), ""]:
        if line and not line.startswith(" "):
            yield from ((name, plain(" ".join(words))) for name in names)
            names, words = line.split(", "), []
        else:
            words.append(line.strip())
    yield from ((name, plain(" ".join(words))) for name in names)
