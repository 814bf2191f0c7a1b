# SPDX-License-Identifier: BSD-2-Clause
"""What simulated programs read: command lines, and the records of their storage."""

from collections.abc import Collection, MutableMapping, Sequence
from typing import Any

Records = MutableMapping[str, dict[str, Any]]


def parsed(
    argv: Sequence[str], switches: Collection[str]
) -> tuple[dict[str, str], list[str]]:
    """Return the options with their values, and the other words.

    Parameters
    ----------
    argv
        The program and its arguments.
    switches
        Options that take no value.
    """
    options: dict[str, str] = {}
    others: list[str] = []
    words = iter(argv[1:])
    for word in words:
        if word in switches:
            options[word] = ""
        elif word.startswith("-"):
            options[word] = next(words)
        else:
            others.append(word)
    return options, others
