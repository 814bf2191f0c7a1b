# SPDX-License-Identifier: BSD-2-Clause
"""What the scripts of a provider print, where that is an answer."""

from moorage.errors import Failed
from moorage.model import Volume
from moorage.storage.command import Where
from moorage.units import Mib

_MOST_ROOM = 1 << 53
"""MiB; no storage has more, and JSON readers would round it."""


def parse_attach(provider: str, printed: str) -> Where:
    """Return what a provider's ``attach`` printed.

    The first line is a block device, or empty; each further one is
    ``<hypervisor>:<uri>``, the first of a hypervisor counts. Other lines are ignored.

    Raises
    ------
    Failed
        If there is neither a device nor a URI, or a URI is empty.
    """
    path, *rest = printed.split("\n")
    uris: dict[str, str] = {}
    for line in rest:
        hypervisor, colon, uri = line.strip().partition(":")
        if colon and not uri:
            raise Failed(
                f"ExtStorage provider '{provider}' printed an empty URI "
                f"for hypervisor '{hypervisor}'"
            )
        if colon:
            uris.setdefault(hypervisor.lower(), uri)
    if not path.strip() and not uris:
        raise Failed(
            f"attach of ExtStorage provider '{provider}' printed neither "
            "a device nor a URI"
        )
    return Where(path=path.strip() or None, block=bool(path.strip()), uris=uris)


def parse_capacity(provider: str, printed: str) -> tuple[Mib, Mib]:
    r"""Return total and free MiB, as a provider's ``capacity`` printed them.

    Raises
    ------
    Failed
        If the first line is not two whole numbers, the second no larger.

    >>> parse_capacity("nas", "2048 512\n")
    (2048, 512)
    """
    words = printed.partition("\n")[0].split()
    if len(words) == 2 and all(word.isdecimal() for word in words):
        total, free = map(int, words)
        if free <= total <= _MOST_ROOM:
            return Mib(total), Mib(free)
    raise Failed(
        f"capacity of ExtStorage provider '{provider}' did not print total and free "
        f"MiB, but {printed[:80]!r}"
    )


def parse_list(provider: str, printed: str) -> tuple[Volume, ...]:
    """Return what a provider's ``list`` printed.

    A line is a volume: its name, its size in MiB (or ``-``), and what else there is to
    say about it. Empty lines are ignored.

    Raises
    ------
    Failed
        If a line is of another form: a list that is half understood is none.
    """
    found = []
    for line in filter(str.strip, printed.split("\n")):
        name, size, note = (*line.split(None, 2), "", "")[:3]
        if size != "-" and not size.isdecimal():
            raise Failed(
                f"list of ExtStorage provider '{provider}' printed a line that is not "
                f"NAME SIZE: '{line.strip()[:80]}'"
            )
        measured = None if size == "-" else Mib(int(size))
        volume = Volume(logical_id=(provider, name), size=measured, note=note.strip())
        found.append(volume)
    return tuple(found)
