# SPDX-License-Identifier: BSD-2-Clause
"""What both ends of the wire agree on: signs of life, and how long silence may last.

An agent that works on a verb says every few seconds that it is alive. A machine that
lost its power, or an agent that hangs, says nothing: the master gives up on it long
before the verb's own limit.
"""

import socket

SENDER = "Moorage"
"""Header of an answer: which software gives it, as JSON."""
BEAT = 5.0
"""Seconds between two signs of life of a verb under way."""
SILENCE = 30.0
"""Seconds without one after which the other side is given up."""
KEPT = 300.0
"""Seconds that a connection stays open for the next call: it is dear to make."""
_IDLE, _INTERVAL, _PROBES = 10, 5, 4
"""Keep-alive of the connection itself: seconds, seconds, and a number."""


def steady(connection: socket.socket) -> socket.socket:
    """Let the kernel notice when nobody is at the other end any more."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        (socket.TCP_KEEPIDLE, _IDLE),
        (socket.TCP_KEEPINTVL, _INTERVAL),
        (socket.TCP_KEEPCNT, _PROBES),
        (socket.TCP_USER_TIMEOUT, int(SILENCE * 1000)),
    ):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
    return connection
