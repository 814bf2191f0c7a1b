# SPDX-License-Identifier: BSD-2-Clause
"""Ports of this machine that nobody has."""

import socket


def free_port() -> int:
    """Return one that is free at this moment."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        found: int = one.getsockname()[1]
        return found
