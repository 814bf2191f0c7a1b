# SPDX-License-Identifier: BSD-2-Clause
"""How a node gets into a cluster: the door that it opens once.

Before it belongs to a cluster, an agent answers on its port to nobody but the holder of
its token, and to two requests only: show your certificate, and take this one.
"""

import asyncio
import hmac
import secrets
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web
from msgspec import DecodeError, Struct, json

from moorage import durable
from moorage.errors import Failed
from moorage.model.addresses import place
from moorage.model.token import Token, to_text
from moorage.node.certificates import tls
from moorage.node.certificates.keys import write_issued

from .doorkeeper import Limits
from .listening import listen

_PATIENCE = 10.0
"""Seconds that a request at the door may take to arrive."""
_LARGEST = 64 * 1024
"""Bytes of a request at the door."""
_STRANGERS = Limits(greeted=64, waiting=256, life=30.0)
"""Nobody shows a certificate at the door."""

T = TypeVar("T")


def joined(directory: Path) -> bool:
    """Whether the node that keeps its keys in `directory` belongs to a cluster."""
    return (directory / "node.pem").exists()


def name(directory: Path) -> str:
    """Return the name that the cluster gave the node.

    Raises
    ------
    Failed
        If it is lost.
    """
    path = directory / "name"
    found = path.read_text() if path.exists() else ""
    if not found:
        raise Failed(
            f"the node's name in {path} is lost, as a power cut may leave it",
            hint=tls.new_keys(directory),
        )
    return found


def taken_by(directory: Path) -> str:
    """Return the fingerprint of the certificate of the master that let the node in."""
    authority = tls.load_certificate((directory / "ca.pem").read_bytes())
    return tls.fingerprint(authority)


async def open_door(
    directory: Path,
    address: str,
    port: int,
    shown: Path,
    *,
    told: str = "",
    opened: Callable[[], None] = lambda: None,
) -> None:
    """Wait until a master has let the node in: the first one that knows the token.

    Parameters
    ----------
    directory
        Where the keys are to be kept.
    shown
        File that gets the token; only its owner can read it, and it goes away with
        the door.
    told
        The address in the token, where that is another one.
    opened
        Called when it is open, and the token there.

    Raises
    ------
    Failed
        If the port cannot be had.
    """
    durable.make(directory)
    key = tls.new_key()
    certificate = tls.self_signed(key, place(address, port))
    durable.write(directory / "node.key", tls.key_pem(key))
    durable.write(directory / "door.pem", tls.pem(certificate))
    secret = secrets.token_urlsafe(24)
    entered = asyncio.Event()
    app = _door(directory, certificate, secret, entered)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(directory / "door.pem", directory / "node.key")
    token = Token(told or address, port, tls.pin(key.public_key()), secret)
    try:
        await listen(runner, address, port, context, _STRANGERS)
        durable.write(shown, f"{to_text(token)}\n".encode())
        opened()
        await entered.wait()
    finally:
        await runner.cleanup()
        shown.unlink(missing_ok=True)
        (directory / "door.pem").unlink(missing_ok=True)


class _Shown(Struct, frozen=True):
    """What the door is told: the secret; without the right one, nothing else counts."""

    secret: Any = None


class _Given(Struct, frozen=True):
    """What a node takes when it is let in; the certificates are PEM.

    Attributes
    ----------
    authority
        Of the master: whom to obey.
    issued
        When that was said, in microseconds.
    """

    name: str
    authority: str
    certificate: str
    issued: int = 0


def _door(
    directory: Path, certificate: tls.Certificate, secret: str, entered: asyncio.Event
) -> web.Application:
    async def said(request: web.Request) -> bytes:
        try:
            async with asyncio.timeout(_PATIENCE):
                body = await request.read()
        except TimeoutError:
            raise web.HTTPRequestTimeout(text="too slow") from None
        told = str(_understood(body, _Shown).secret)
        if entered.is_set() or not hmac.compare_digest(told.encode(), secret.encode()):
            raise web.HTTPForbidden(text="wrong secret")
        return body

    async def show(request: web.Request) -> web.Response:
        await said(request)
        return web.json_response({"certificate": tls.pem(certificate).decode()})

    async def take(request: web.Request) -> web.Response:
        given = _understood(await said(request), _Given)
        _check(given, certificate)
        durable.write(directory / "ca.pem", given.authority.encode())
        write_issued(directory, given.issued)
        durable.write(directory / "name", given.name.encode())
        # Last: its presence says that the node has joined.
        durable.write(directory / "node.pem", given.certificate.encode())
        entered.set()
        return web.json_response({})

    app = web.Application(client_max_size=_LARGEST)
    app.add_routes([web.post("/show", show), web.post("/take", take)])
    return app


def _understood(body: bytes, kind: type[T]) -> T:
    try:
        return json.decode(body, type=kind)
    except (DecodeError, UnicodeError, RecursionError) as error:
        raise web.HTTPBadRequest(text=f"the request is off: {error}") from None


def _check(given: _Given, certificate: tls.Certificate) -> None:
    """Refuse keys that the node could not serve with: it would be lost to everybody."""
    try:
        tls.load_certificate(given.authority.encode())
        signed = tls.load_certificate(given.certificate.encode())
    except ValueError:
        raise web.HTTPBadRequest(text="a certificate cannot be read") from None
    if signed.public_key() != certificate.public_key():
        raise web.HTTPBadRequest(text="the certificate is for another key")
