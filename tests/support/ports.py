# SPDX-License-Identifier: BSD-2-Clause
"""Ports of this machine that nobody has, and nobody gets."""

import random
import socket
from collections import deque
from contextlib import suppress

# Below those that Linux gives to outgoing connections (32768 and up): between a draw
# and the start of who listens there, one of these would take the port. Above those
# that clusters give to guests.
_RANGE = range(20_000, 32_000)

_kept: deque[socket.socket] = deque(maxlen=100)
"""A name for each of the last ports, by which other test processes see it taken."""


def free_port(address: str = "127.0.0.1") -> int:
    """Return one that is free at an address, and that no other test is given."""
    for port in random.SystemRandom().sample(_RANGE, len(_RANGE)):
        name = socket.socket(socket.AF_UNIX)
        with suppress(OSError), socket.socket() as probe:
            name.bind(f"\0moorage-test-port-{port}")
            probe.bind((address, port))
            _kept.append(name)
            return port
        name.close()
    raise AssertionError("no port is free")
