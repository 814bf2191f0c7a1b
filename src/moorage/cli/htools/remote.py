# SPDX-License-Identifier: BSD-2-Clause
"""Clusters over a connection: RAPI (or its answers in files), and LUXI."""

import os
import threading
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

from moorage.api.luxi import ANSWER_TIMEOUT
from moorage.cli.environment import connected
from moorage.cli.htools.files import LARGEST_FILE, decoded, read_text
from moorage.cli.htools.values import one_line
from moorage.client import Client
from moorage.errors import BadInput, Failed, MoorageError, Unreachable
from moorage.htools.fleet import Fleet
from moorage.htools.formats import luxi as luxi_format
from moorage.htools.formats import rapi as rapi_format

if TYPE_CHECKING:  # start-up time
    from http.client import HTTPConnection

T = TypeVar("T")

PORT: Final = 5080
TIMEOUT: Final = 60.0
"""Seconds for a whole answer, however it trickles in."""
CONNECT_TIMEOUT: Final = 15.0
_PIECE: Final = 2**20
_PATHS: Final = {
    "groups": "/2/groups?bulk=1",
    "nodes": "/2/nodes?bulk=1",
    "instances": "/2/instances?bulk=1",
    "info": "/2/info",
}


def rapi(address: str) -> Fleet:
    """Return the cluster that a RAPI server, or a folder ``file://DIR``, describes.

    Raises
    ------
    Unreachable, NotFound
        If there is no answer, or no file.
    BadInput
        If an answer is off, with its name, line and column.
    """
    folder = address.removeprefix("file://")
    if folder != address:
        files = {name: str(Path(folder) / f"{name}.json") for name in _PATHS}
        texts = {name: read_text(path) for name, path in files.items()}
        return rapi_format.parse(texts, files)
    base = _base(address)
    urls = {name: base + path for name, path in _PATHS.items()}
    texts = {name: fetch(url, TIMEOUT) for name, url in urls.items()}
    return rapi_format.parse(texts, {name: _shown(url) for name, url in urls.items()})


def _base(address: str) -> str:
    """Return the address with scheme and port."""
    base = address if "://" in address else f"https://{address}"
    try:
        parts = urlsplit(base)
        port = parts.port
    except ValueError as error:
        raise BadInput(f"{base.rpartition('@')[2]!r} is no address: {error}") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise BadInput(
            f"{_shown(base)!r} is no address of a cluster",
            hint="write HOST, HOST:PORT, https://NAME:PASSWORD@HOST:PORT or file://DIR",
        )
    return base.rstrip("/") if port else f"{base.rstrip('/')}:{PORT}"


def _shown(url: str) -> str:
    """Return an address without the name and the password that may stand in it.

    >>> _shown("https://anna:secret@cluster:5080/2/info")
    'https://cluster:5080/2/info'
    """
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _login(parts: SplitResult) -> dict[str, str]:
    """Return the header that shows the name and the password of an address."""
    if parts.username is None:
        return {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}


_STRANGER = "write https://NAME:PASSWORD@HOST:PORT; a token is for MOORAGE_URL, and -L"


def fetch(url: str, timeout: float = TIMEOUT, longest: int = LARGEST_FILE) -> str:
    """Return the text behind an address; certificates are not looked at.

    Parameters
    ----------
    timeout
        Seconds for the whole answer.
    longest
        Bytes that it may have.

    Raises
    ------
    Unreachable
        If there is no answer within the time, or not a good one.
    BadInput
        If it is too long, or not UTF-8.
    """
    shown = _shown(url)
    silence = f"no answer from {shown}"
    data = within(timeout, lambda: _get(url, timeout, longest), silence)
    if len(data) > longest:
        raise BadInput(f"{shown}: the answer is larger than {longest >> 20} MiB")
    return decoded(data, shown)


def _get(url: str, timeout: float, longest: int) -> bytes:
    from http.client import HTTPException  # noqa: PLC0415 - start-up time

    parts, shown = urlsplit(url), _shown(url)
    pieces: list[bytes] = []
    link = _link(parts, min(timeout, CONNECT_TIMEOUT))
    try:
        link.connect()
        link.sock.settimeout(timeout)
        path = parts._replace(scheme="", netloc="").geturl()
        link.request("GET", path, headers=_login(parts))
        with link.getresponse() as answer:
            if answer.status != 200:
                raise Unreachable(
                    f"{shown} answered {answer.status} {one_line(answer.reason)}",
                    hint=_STRANGER if answer.status == 401 else "",
                )
            while sum(map(len, pieces)) <= longest and (piece := answer.read(_PIECE)):
                pieces.append(piece)
    except (OSError, ValueError, HTTPException) as error:
        raise Unreachable(f"no answer from {shown}: {_reason(error)}") from error
    finally:
        link.close()
    return b"".join(pieces)


def _link(parts: SplitResult, timeout: float) -> "HTTPConnection":
    """Return a connection to a web server, not made yet."""
    import ssl  # noqa: PLC0415 - start-up time
    from http.client import HTTPConnection, HTTPSConnection  # noqa: PLC0415

    host, port = parts.hostname or "", parts.port
    if parts.scheme == "http":
        return HTTPConnection(host, port, timeout=timeout)
    context = ssl.create_default_context()
    # The cluster signs its own certificate.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return HTTPSConnection(host, port, timeout=timeout, context=context)


def _reason(error: Exception) -> str:
    """Return why there was no answer, in words."""
    words = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return one_line(words)


def within(seconds: float, work: Callable[[], T], complaint: str) -> T:
    """Return what some work returns, if that takes no longer than a time.

    A thread that is too late stays behind, and ends with the program: whoever
    sends a byte a minute would hold up every wait for the next byte.

    Raises
    ------
    Unreachable
        With the complaint, when the time is over.
    """
    done: list[T] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            done.append(work())
        except Exception as error:  # noqa: BLE001 - raised again where it is waited for
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    for error in errors:
        raise error
    if not done:
        raise Unreachable(f"{complaint} in {seconds:g} s")
    return done[0]


def luxi(path: str, timeout: float = TIMEOUT) -> Fleet:
    """Return the cluster that a master describes, at a socket or the usual place.

    Raises
    ------
    MoorageError
        If nobody listens there, or an answer is off.
    """
    return luxi_format.parse(
        within(
            timeout, lambda: _asked(path, timeout), "no whole answer from the master"
        )
    )


def _asked(path: str, timeout: float) -> dict[str, Any]:
    with connect(path, timeout) as link:
        return {
            name: _answer(link, method, args)
            for name, (method, args) in luxi_format.CALLS.items()
        }


def _answer(link: Client, method: str, args: list[Any]) -> Any:  # noqa: ANN401
    try:
        return link.call(method, *args)
    except MoorageError as error:
        # Its words are the other side's.
        error.message = one_line(error.message) or f"the master refused {method}"
        error.hint = one_line(error.hint)
        raise
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise Failed(f"the master's answer to {method} makes no sense: {error}") from (
            error
        )


def connect(path: str, timeout: float = ANSWER_TIMEOUT) -> Client:
    """Return the way to a cluster: a master's socket, or the usual place if empty."""
    return connected(os.environ, socket=path, timeout=timeout)
