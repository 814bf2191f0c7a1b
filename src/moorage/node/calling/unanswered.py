# SPDX-License-Identifier: BSD-2-Clause
"""What is said of a node that does not answer, or answers with an error."""

import errno
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp

from moorage.errors import MoorageError, Stale, Unreachable
from moorage.model import Node
from moorage.model.addresses import place

from . import answers
from .pins import Mistrusted

_SILENT = frozenset(
    {
        errno.ECONNREFUSED,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.ENETUNREACH,
        errno.ETIMEDOUT,
    }
)
"""Errors of a connection to a machine that may be off."""


@contextmanager
def told_as_the_nodes(node: Node, what: str) -> Iterator[None]:
    """Tell errors as the node's; raise `Unreachable` for what is no answer.

    Parameters
    ----------
    what
        What came, in brackets.
    """
    try:
        yield
    except answers.Unfit as error:
        raise Unreachable(
            f"node {node.name} ({place_of(node)}) does not answer as an "
            f"agent does ({what}): {error}",
            hint=f"gnt-node info {node.name}",
            node=node.name,
            cause=str(error),
            sent=True,
            silent=False,
            unfit=True,
        ) from None
    except Stale as error:
        if "term" in error.facts:
            error.message = f"node {node.name} refuses this master: {error.message}"
            error.hint = "gnt-cluster verify"  # asks the others, too
        raise
    except MoorageError as error:
        if error.hint:
            error.with_hint(f"node {node.name} suggests: {error.hint}")
        raise


def place_of(node: Node) -> str:
    """Return where a node's agent is asked."""
    return place(node.primary_ip, node.port)


def _cause(error: BaseException) -> str:
    """Return why, in a line."""
    error = inner_of(error)
    if isinstance(error, ssl.SSLError):  # its number is no system's error
        words = getattr(error, "verify_message", "") or error.reason or str(error)
        return f"no trust in its certificate: {' '.join(words.split())}"
    if isinstance(error, aiohttp.SocketTimeoutError):
        return "it has fallen silent"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "its agent ended in the middle of an answer"
    number = getattr(error, "errno", None)
    words = os.strerror(number) if number else str(error)
    return " ".join(words.split()) or "no answer in time"


def inner_of(error: BaseException) -> BaseException:
    """Return what lies behind an error of aiohttp's."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return error.certificate_error
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error
    return error


def unreachable(
    node: Node, error: Exception, *, sent: bool, lives: bool = False
) -> Unreachable:
    """Return what is said of a node that does not answer.

    Parameters
    ----------
    sent
        Whether it may have got the request.
    lives
        Whether it said just now that it works on it: so it is not off.
    """
    inner = inner_of(error)
    timeout = isinstance(error, TimeoutError)
    works = lives and timeout and not isinstance(error, aiohttp.SocketTimeoutError)
    cause = "its agent works on it still" if works else _cause(error)
    found = Unreachable(
        f"node {node.name} ({place_of(node)}) does not answer: {cause}",
        node=node.name,
        cause=cause,
        sent=sent,
        silent=not works and (timeout or getattr(inner, "errno", None) in _SILENT),
    )
    if isinstance(inner, Mistrusted):
        found.with_hint(inner.hint).facts["expired"] = inner.expired
    if isinstance(inner, ssl.SSLCertVerificationError):
        found.facts["foreign"] = True  # it serves, and with another's certificate
        if not found.hint:
            again = f"gnt-node add --readd --token-file join-token {node.name}"
            found.with_hint(
                "if a new authority shut it out: empty its directory keys, start its "
                f"agent anew, then: {again}"
            )
    return found
