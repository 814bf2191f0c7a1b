# SPDX-License-Identifier: BSD-2-Clause
"""Runs on the emulated node: what comes to a port goes to its master's socket.

python inside_forward.py PORT SOCKET
"""

import asyncio
import sys
from contextlib import suppress


async def _pipe(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    target.transport.abort()


async def _link(up: asyncio.StreamReader, on: asyncio.StreamWriter) -> None:
    try:
        down, back = await asyncio.open_unix_connection(sys.argv[2])
    except OSError:
        on.transport.abort()
        return
    await asyncio.gather(_pipe(up, back), _pipe(down, on))


async def _main() -> None:
    server = await asyncio.start_server(_link, None, int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(_main())
