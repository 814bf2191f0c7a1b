# SPDX-License-Identifier: BSD-2-Clause
"""How a node gets into a cluster: the door it opens once, and the master's knock.

Before it belongs to a cluster, an agent answers on its port to nobody but the holder of
its token, and to two requests only: show your certificate, and take this one.
"""

import asyncio
import hmac
import secrets
import ssl
from pathlib import Path

import aiohttp
from aiohttp import web

from moorage.errors import Failed, Unreachable
from moorage.model.token import Token, to_text

from . import tls

_SECONDS = 20.0


def joined(directory: Path) -> bool:
    """Whether the node that keeps its keys in `directory` belongs to a cluster."""
    return (directory / "node.pem").exists()


async def open_door(directory: Path, address: str, port: int, shown: Path) -> None:
    """Wait until a master has let the node in.

    Parameters
    ----------
    directory
        Where the keys are to be kept.
    shown
        File that gets the token; only its owner can read it, and it goes away with
        the door.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = tls.new_key()
    certificate = tls.self_signed(key, f"{address}:{port}")
    tls.write_private(directory / "node.key", tls.key_pem(key))
    tls.write_private(directory / "door.pem", tls.pem(certificate))
    secret = secrets.token_urlsafe(24)
    entered = asyncio.Event()
    app = _door(directory, certificate, secret, entered)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(directory / "door.pem", directory / "node.key")
    await web.TCPSite(runner, address, port, ssl_context=context).start()
    token = Token(address, port, tls.fingerprint(certificate), secret)
    tls.write_private(shown, f"{to_text(token)}\n".encode())
    try:
        await entered.wait()
    finally:
        await runner.cleanup()
        shown.unlink(missing_ok=True)
        (directory / "door.pem").unlink(missing_ok=True)


def _door(
    directory: Path, certificate: tls.Certificate, secret: str, entered: asyncio.Event
) -> web.Application:
    def check(said: object) -> None:
        if not hmac.compare_digest(str(said), secret):
            raise web.HTTPForbidden(text="wrong secret")

    async def show(request: web.Request) -> web.Response:
        check((await request.json()).get("secret"))
        return web.json_response({"certificate": tls.pem(certificate).decode()})

    async def take(request: web.Request) -> web.Response:
        given = await request.json()
        check(given.get("secret"))
        tls.write_private(directory / "ca.pem", given["authority"].encode())
        tls.write_private(directory / "name", given["name"].encode())
        # Last: its presence says that the node has joined.
        tls.write_private(directory / "node.pem", given["certificate"].encode())
        asyncio.get_running_loop().call_soon(entered.set)
        return web.json_response({})

    app = web.Application()
    app.add_routes([web.post("/show", show), web.post("/take", take)])
    return app


async def let_in(authority: tls.Authority, token: Token, name: str) -> None:
    """Let the node of `token` into the cluster, as `name`.

    Raises
    ------
    Unreachable
        If nobody answers there, or with another certificate.
    Failed
        If the node does not accept the token.
    """
    base = f"https://{token.address}:{token.port}"
    pinned = aiohttp.Fingerprint(bytes.fromhex(token.fingerprint))
    patience = aiohttp.ClientTimeout(total=_SECONDS)
    try:
        async with aiohttp.ClientSession(timeout=patience) as session:
            said = {"secret": token.secret}
            async with session.post(f"{base}/show", json=said, ssl=pinned) as answer:
                _accepted(answer, name)
                shown = tls.load_certificate(
                    (await answer.json())["certificate"].encode()
                )
            signed = authority.sign_node(shown, name)
            given = said | {
                "name": name,
                "authority": tls.pem(authority.certificate).decode(),
                "certificate": tls.pem(signed).decode(),
            }
            async with session.post(f"{base}/take", json=given, ssl=pinned) as answer:
                _accepted(answer, name)
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise Unreachable(
            f"node {name} does not open its door at {token.address}:{token.port}: "
            f"{str(error) or type(error).__name__}",
            hint="is its agent running, and is the token its newest one?",
            sent=False,
        ) from error


def _accepted(answer: aiohttp.ClientResponse, name: str) -> None:
    if answer.status != web.HTTPOk.status_code:
        raise Failed(f"node {name} does not accept the token (HTTP {answer.status})")
