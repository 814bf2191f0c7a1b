# SPDX-License-Identifier: BSD-2-Clause
"""What bad input looked like, short enough for one line of an error."""

from typing import Final

MOST: Final = 40
"""Characters."""


def brief(text: str) -> str:
    r"""Return a text quoted, on one line, cut where it is long.

    >>> print(brief("a b"), brief("a\nb"), brief("x" * 50)[-6:])
    'a b' 'a\nb' xx...'
    """
    cut = text if len(text) <= MOST else text[: MOST - 3] + "..."
    return repr(cut) if cut.isprintable() else ascii(cut)
