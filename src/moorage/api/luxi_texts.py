# SPDX-License-Identifier: BSD-2-Clause
"""Texts of a request that no program takes: with a null, or half a character.

JSON can say both. A journal could not keep the one, nor an argument of a script the
other; so they are refused at the door.
"""

from collections.abc import Iterator

from moorage.errors import BadInput


def check_texts(value: object) -> None:
    """Raise `BadInput` for a text that cannot be stored, or handed to a program."""
    for text in _texts(value):
        if "\0" in text:
            raise BadInput("a text in the request holds a null character")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise BadInput("a text in the request is not Unicode") from error


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in a JSON value, names of fields included; nested or not."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, list):
            left.extend(one)
        elif isinstance(one, dict):
            left.extend(one.keys())
            left.extend(one.values())
