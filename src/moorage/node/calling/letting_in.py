# SPDX-License-Identifier: BSD-2-Clause
"""How the master lets a node into the cluster: it comes to the node's door once."""

import asyncio
import re
import ssl
from functools import partial
from http import HTTPStatus

import aiohttp
from msgspec import DecodeError, Struct, json

from moorage.errors import BadInput, Failed, Unreachable
from moorage.model.addresses import place
from moorage.model.token import Token
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority

from . import asking
from .pins import Way, watched

_SECONDS = 20.0
_LARGEST = 64 * 1024
"""Bytes of an answer of the door."""
_PORTS = 1 << 16
_PIN = re.compile("[0-9a-f]{64}")


class _Certificate(Struct, frozen=True):
    """What the door answers; PEM."""

    certificate: str


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
    if answer.status != HTTPStatus.OK:
        raise Failed(f"node {name} does not accept the token (HTTP {answer.status})")
