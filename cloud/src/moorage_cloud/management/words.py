# SPDX-License-Identifier: BSD-2-Clause
"""Words of a command line that stand for something else."""

from argparse import ArgumentTypeError
from collections.abc import Iterable

from moorage_cloud.errors import BadRequest

_FLAGS = {"true": True, "yes": True, "false": False, "no": False}


def flag(word: str) -> bool:
    """Return what ``True`` or ``False`` says.

    >>> flag("True"), flag("no")
    (True, False)
    """
    try:
        return _FLAGS[word.lower()]
    except KeyError:
        raise ArgumentTypeError(f"say True or False, not '{word}'") from None


def pairs(text: str) -> Iterable[tuple[str, str]]:
    """Yield the pairs of ``KEY=VALUE,…``.

    >>> dict(pairs("a=1,b=x=y"))
    {'a': '1', 'b': 'x=y'}
    """
    for one in filter(None, text.split(",")):
        key, sign, value = one.partition("=")
        if not sign:
            raise BadRequest(f"a spec is KEY=VALUE, not '{one}'")
        yield key, value
