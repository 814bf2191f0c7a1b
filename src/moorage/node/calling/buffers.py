# SPDX-License-Identifier: BSD-2-Clause
"""An event loop whose connections in TLS take little memory.

asyncio gives each of them a buffer of 256 KiB for its life, and Python's TLS another
one for a moment at each read: a quarter of a gibibyte for a thousand nodes that say a
few kilobytes each. What was read at once at most is held twice: OpenSSL's own buffer
grows with it, and stays.

Nothing of asyncio sets that for some connections and not for others: the class
attribute ``SSLProtocol.max_size`` is everybody's. So this is done where an event loop
makes its transports, to those of one loop. Where a later Python has no such buffer,
nothing is done, and connections are as large as it makes them.
"""

import asyncio
from asyncio.sslproto import SSLProtocol
from typing import Any

READ = 2 * 1024
"""Bytes that are read at once."""


class SmallBuffers(asyncio.SelectorEventLoop):
    """An event loop for many connections in TLS that are quiet most of the time."""

    def _make_ssl_transport(self, *args: Any, **options: Any) -> asyncio.Transport:  # noqa: ANN401
        made: asyncio.Transport = super()._make_ssl_transport(*args, **options)  # type: ignore[misc]
        protocol = getattr(made, "_ssl_protocol", None)
        if isinstance(protocol, SSLProtocol) and hasattr(protocol, "_ssl_buffer"):
            # Nothing was read yet: the first turn of the loop begins with that.
            space = bytearray(READ)
            vars(protocol).update(
                max_size=READ, _ssl_buffer=space, _ssl_buffer_view=memoryview(space)
            )
        return made
