# SPDX-License-Identifier: BSD-2-Clause
"""How this side asks others over HTTPS: whoever answers may be anybody by now."""

from typing import Any

import aiohttp

_REDIRECTS = range(300, 400)
_PATIENCE = aiohttp.ClientTimeout(total=300.0, sock_connect=30.0)
"""What a request gets that says nothing of it."""


class Redirected(aiohttp.ClientError):
    """The other side answered with where else to ask."""


class Frugal(aiohttp.TCPConnector):
    """Connections of which one to each node is kept for the next call, and no more.

    Each takes a tenth of a mebibyte, and what one node is asked at once is asked one
    after the other the next time. aiohttp has no option for that: it keeps as many as
    there ever were at once. A test fails where a later one gives them back otherwise.
    """

    def _release(self, key: Any, protocol: Any, *, should_close: bool = False) -> None:  # noqa: ANN401 - aiohttp's own
        has_one = bool(self._conns.get(key))
        super()._release(key, protocol, should_close=should_close or has_one)


async def _stay(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Go nowhere else, whatever asks: the master reaches more than a node does."""
    answer = await handler(request)
    if answer.status in _REDIRECTS:
        answer.close()
        raise Redirected(f"HTTP {answer.status} sends elsewhere, as no agent does")
    return answer


def session(
    connector: aiohttp.BaseConnector | None = None,
    timeout: aiohttp.ClientTimeout = _PATIENCE,
) -> aiohttp.ClientSession:
    """Return a session in which nothing is followed, and nothing unpacked.

    A small answer could fill the memory, and one that sends elsewhere could have this
    machine ask what the other side cannot reach.
    """
    return aiohttp.ClientSession(
        connector=connector,
        timeout=timeout,
        auto_decompress=False,
        headers={"Accept-Encoding": "identity"},
        middlewares=(_stay,),
    )
