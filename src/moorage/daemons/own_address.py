# SPDX-License-Identifier: BSD-2-Clause
"""At which address others reach this machine."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from itertools import chain

from moorage.errors import BadInput, Failed

_FAR = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
"""Somewhere else in the world; nothing is sent there."""


def resolved(word: str) -> str:
    """Return the address that an agent is to listen at, where it was given as a name.

    Raises
    ------
    BadInput
        If it is neither an address nor the name of one.
    """
    with suppress(ValueError):
        return str(ip_address(word))
    try:
        found = socket.getaddrinfo(word, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise BadInput(
            f"the agent's address '{word}' is the name of none: {error}"
        ) from None
    return str(found[0][4][0])


def told(address: str) -> str:
    """Return the address that the cluster is told of an agent that listens at one.

    For one that listens everywhere, that is the address of the machine's name, as in
    Ganeti, or else the one from which the machine would talk to the world.

    Raises
    ------
    Failed
        If it has none that others could reach.
    """
    if not ip_address(address).is_unspecified:
        return address
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    found = next(chain(_of_name(family), _of_route(family)), None)
    if found is None:
        raise Failed(
            f"the agent listens at {address}, and nobody can tell at which address "
            'others reach it: say so in /etc/moorage/agent.toml, address = "…", or in '
            "/etc/hosts under the machine's name"
        )
    return found


def _of_name(family: int) -> Iterator[str]:
    """Yield the addresses of the machine's name that are its own."""
    with suppress(OSError, UnicodeError):
        for one in socket.getaddrinfo(
            socket.gethostname(), None, family, socket.SOCK_STREAM
        ):
            word = str(one[4][0])
            if _is_far(word) and _is_own(word, family):
                yield word


def _of_route(family: int) -> Iterator[str]:
    """Yield the address that the default route starts from."""
    with socket.socket(family, socket.SOCK_DGRAM) as probe, suppress(OSError):
        probe.connect((_FAR[socket.AddressFamily(family)], 9))
        yield str(probe.getsockname()[0])


def _is_far(word: str) -> bool:
    """Whether others could reach an address: it is not the machine's own talk."""
    found = ip_address(word.partition("%")[0])
    return not (found.is_loopback or found.is_unspecified or found.is_link_local)


def _is_own(word: str, family: int) -> bool:
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((word, 0))
        except OSError:
            return False
    return True
