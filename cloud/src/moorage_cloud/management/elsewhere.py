# SPDX-License-Identifier: BSD-2-Clause
"""Commands of the earlier system or of Django that are not for here, and what is."""

from collections.abc import Mapping

_MADE = "servers are made on their cluster, and taken over with server-create"
_ELSEWHERE: Mapping[str, str] = {
    "server-import": _MADE,
    "server-export": "an instance is exported on its cluster, by gnt-backup export",
    "flavor": _MADE,
    "network": "networks are the clusters' own, by gnt-network",
    "subnet": "networks are the clusters' own, by gnt-network",
    "port": "network cards are the clusters' own, by gnt-instance modify",
    "ip": "addresses are the clusters' own, by gnt-network",
    "floating-ip": "addresses are the clusters' own, by gnt-network",
    "pool": "names and addresses are the clusters' own",
    "stats-cyclades": "volume-list, server-list and quota tell it, with -o json",
    "reconcile-resources-cyclades": "quota --check and quota --fix do that",
    "reconcile-networks": "networks are the clusters' own",
    "reconcile-pools": "names and addresses are the clusters' own",
    "changepassword": "user-modify NAME --password does it, and ends their tokens",
    "createsuperuser": "an administrator is made by user-create --role admin",
}


def told(word: str) -> str | None:
    """Return what is to be said of a command that is not here; None for any other.

    >>> told("flavor-list")
    'servers are made on their cluster, and taken over with server-create'
    >>> told("volume-list")
    """
    found = max(
        (one for one in _ELSEWHERE if word == one or word.startswith(f"{one}-")),
        key=len,
        default=None,
    )
    return None if found is None else _ELSEWHERE[found]
