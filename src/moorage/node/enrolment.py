# SPDX-License-Identifier: BSD-2-Clause
"""How a node gets into a cluster: the door it opens once, and the master's knock.

Before it belongs to a cluster, an agent answers on its port to nobody but the holder of
its token, and to two requests only: show your certificate, and take this one.
"""

import asyncio
import hmac
import re
import secrets
import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
from aiohttp import web
from msgspec import DecodeError, Struct, json

from moorage import durable
from moorage.errors import BadInput, Failed, Unreachable
from moorage.model.addresses import place
from moorage.model.token import Token, to_text

from . import asking, tls
from .authority import Authority
from .doorkeeper import Limits
from .keys import write_issued
from .pins import Way, watched
from .server import listen

_SECONDS = 20.0
_PATIENCE = 10.0
"""Seconds that a request at the door may take to arrive."""
_LARGEST = 64 * 1024
"""Bytes of a request at the door."""
_STRANGERS = Limits(greeted=64, waiting=256, life=30.0)
"""Nobody shows a certificate at the door."""
_PORTS = 1 << 16
_PIN = re.compile("[0-9a-f]{64}")

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


class _Certificate(Struct, frozen=True):
    """What the door answers; PEM."""

    certificate: str


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


async def let_in(authority: Authority, token: Token, name: str) -> None:
    """Let the node of `token` into the cluster, as `name`.

    Raises
    ------
    Unreachable
        If nobody answers there, or with another certificate.
    Failed
        If the node does not accept the token.
    """
    base = f"https://{place(token.address, token.port)}"
    pinned = _pinned(token)
    patience = aiohttp.ClientTimeout(total=_SECONDS)
    sent = False
    try:
        # A newcomer may be anybody's, too.
        async with asking.session(timeout=patience) as session:
            ask = partial(session.post, ssl=pinned, allow_redirects=False)
            said = {"secret": token.secret}
            async with ask(f"{base}/show", json=said) as answer:
                _accepted(answer, name)
                shown = await _shown(answer, name)
            signed = authority.sign_node(shown, name)
            given = said | {
                "name": name,
                "authority": tls.pem(authority.own).decode(),
                "certificate": tls.pem(signed).decode(),
                "issued": authority.told([authority.own]),
            }
            sent = True
            async with ask(f"{base}/take", json=given) as answer:
                _accepted(answer, name)
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        cause = " ".join(str(error).split()) or type(error).__name__
        raise Unreachable(
            f"node {name} does not open its door at "
            f"{place(token.address, token.port)}: {cause}",
            hint="is its agent running, and is the token its newest one?",
            sent=sent,
            silent=False,
        ) from error


def _pinned(token: Token) -> ssl.SSLContext:
    """Return a context that knows the node behind the door by its key alone."""
    hint = "the node's agent keeps it in its file join-token"
    if not 0 < token.port < _PORTS:
        raise BadInput(
            f"the token is damaged: there is no port {token.port}", hint=hint
        )
    if not _PIN.fullmatch(token.fingerprint):
        raise BadInput("the token is damaged: it names no key", hint=hint)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # it has got no name yet, and no certificate
    context.verify_mode = ssl.CERT_NONE
    way = Way(watched(context), "this token", (token.fingerprint,), clock=None)
    return way.context


async def _shown(answer: aiohttp.ClientResponse, name: str) -> tls.Certificate:
    """Return the certificate that a door shows; no more is read than one can be."""
    try:
        text = await answer.content.readexactly(_LARGEST)
    except asyncio.IncompleteReadError as rest:
        text = rest.partial
    try:
        found = json.decode(text, type=_Certificate)
        return tls.load_certificate(found.certificate.encode())
    except (DecodeError, ValueError, RecursionError):
        raise Failed(f"node {name} shows no certificate at its door") from None


def _accepted(answer: aiohttp.ClientResponse, name: str) -> None:
    if answer.status != web.HTTPOk.status_code:
        raise Failed(f"node {name} does not accept the token (HTTP {answer.status})")
