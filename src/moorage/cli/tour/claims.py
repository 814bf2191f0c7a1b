# SPDX-License-Identifier: BSD-2-Clause
"""Claims: what a step says must be true, or the tour ends loudly."""


class BrokenClaim(Exception):
    """A step showed that something is not as it was said to be."""


def claim(true: object, sentence: str) -> None:
    """Raise :class:`BrokenClaim` with `sentence` unless it is true."""
    if not true:
        raise BrokenClaim(sentence)
