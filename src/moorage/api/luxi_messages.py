# SPDX-License-Identifier: BSD-2-Clause
"""LUXI: the protocol between the command line and the master, over a Unix socket.

A message is JSON followed by one byte, 0x03 (JSON itself never holds that byte).

==========  ==========================================================================
request     ``{"method": str, "args": [...], "version": int, "software": str}``
answer      ``{"success": bool, "result": ..., "version": int, "software": str}``
by a door   a request with ``"caller": {"name": str, "role": int, "detail": str}``
refusal     ``success`` is false; ``result`` is ``[class, [message, code], details]``
==========  ==========================================================================

The first two elements of a refusal are Ganeti's (``OpPrereqError`` when nothing was
changed, ``OpExecError`` when something ran); the third is :meth:`MoorageError.to_json`.

Ganeti's clients name no software. They bear no third element, and want to see the
version that they sent, of Ganeti 3.0 or 3.1; those in Haskell send none.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from moorage import __version__, errors
from moorage.errors import BadInput, Failed, MoorageError, Refused

VERSION = 3_010_000
"""Version of the configuration that both sides must share, as Ganeti counts."""
_GANETIS = range(3_000_000, 3_020_000)
"""Versions of Ganeti's clients that speak as we do."""
END = b"\x03"
_AT_ONCE = 256
"""Rows that are encoded in one go."""
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
"""How half a character is written in JSON, which alone is no text."""


class Peer(NamedTuple):
    """Whom answers are for.

    Attributes
    ----------
    version
        What it has to see in them.
    ganeti
        Whether it is a client of Ganeti's.
    """

    version: int = VERSION
    ganeti: bool = False


OURS: Final = Peer()
PEER: ContextVar[Peer] = ContextVar("PEER", default=OURS)
"""Who sent the request that is being answered; :func:`decode_request` notes it."""


def _ourselves() -> dict[str, Any]:
    return {"version": PEER.get().version, "software": __version__}


def _encode(value: Mapping[str, Any]) -> bytes:
    return _json(value).encode() + END


def _json(value: Any) -> str:  # noqa: ANN401
    return json.dumps(value, separators=(",", ":"))


def _decode(message: bytes) -> dict[str, Any]:
    try:
        value = json.loads(message.decode())
    except ValueError as error:
        raise BadInput(f"a LUXI message is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadInput("a LUXI message is not a JSON object")
    return value


def _check_text(value: Any) -> None:  # noqa: ANN401
    """Refuse halves of characters: nobody can store, send or print them again."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadInput(
            "a LUXI request holds half a character, which is no text"
        ) from None


def encode_request(
    method: str, args: Sequence[Any], caller: Mapping[str, Any] | None = None
) -> bytes:
    """Return a request, its end included.

    Parameters
    ----------
    caller
        Who asks, where a door asks for somebody: ``name``, ``role`` (its number),
        ``detail`` and ``request``.
    """
    told = {"caller": caller} if caller else {}
    return _encode({"method": method, "args": list(args), **told, **_ourselves()})


def decode_request(message: bytes) -> tuple[str, list[Any]]:
    """Return the method and the arguments of a request.

    Raises
    ------
    BadInput
        If it is not a request, or of another version.
    """
    request = _decode(message)
    if _HALF.search(message):
        _check_text(request)
    method, args = request.get("method"), request.get("args", [])
    if not isinstance(method, str) or not isinstance(args, list):
        raise BadInput("a LUXI request has a 'method' (text) and 'args' (a list)")
    PEER.set(_peer(request))
    return method, args


def _peer(request: Mapping[str, Any]) -> Peer:
    """Return who sent a request; refuse whom nobody here would understand."""
    version = request.get("version", VERSION)
    if "software" in request or version not in _GANETIS:
        _check_version(request)
        return OURS
    return Peer(version, ganeti=True)


def decode_caller(message: bytes) -> Any:  # noqa: ANN401
    """Return what a request says of who asks; None if it says nothing."""
    return _decode(message).get("caller") if b'"caller"' in message else None


def encode_result(result: Any) -> bytes:  # noqa: ANN401
    """Return the answer to a request that was carried out, its end included."""
    return _encode({"success": True, "result": result, **_ourselves()})


def encode_long(
    result: list[Any] | Mapping[str, Any], write: Callable[[Any], str] = _json
) -> bytes:
    """Return the same for many rows, some at a time: other threads get their turn.

    Parameters
    ----------
    result
        Rows, or the fields and the data of a query.
    write
        Writes some rows as JSON.

    >>> table = {"fields": [], "data": [[[0, "web1"]], [[0, "web2"]]]}
    >>> encode_long(table) == encode_result(table)
    True
    """
    if isinstance(result, list):
        body = f"[{_rows(result, write)}]"
    else:
        fields = _json(result["fields"])
        body = f'{{"fields":{fields},"data":[{_rows(result["data"], write)}]}}'
    return f'{{"success":true,"result":{body},{_json(_ourselves())[1:]}'.encode() + END


def _rows(rows: list[Any], write: Callable[[Any], str]) -> str:
    parts = (rows[at : at + _AT_ONCE] for at in range(0, len(rows), _AT_ONCE))
    return ",".join(write(part)[1:-1] for part in parts)


def encode_error(error: MoorageError) -> bytes:
    """Return the answer to a request that was not, its end included."""
    return _encode({"success": False, "result": error_to_wire(error), **_ourselves()})


def decode_answer(message: bytes) -> Any:  # noqa: ANN401
    """Return the result in an answer.

    Raises
    ------
    MoorageError
        The one that the other side raised.
    BadInput
        If it is not an answer, or of another version.
    """
    answer = _decode(message)
    if "success" not in answer or "result" not in answer:
        raise BadInput("a LUXI answer has 'success' and 'result'")
    if not answer["success"]:
        raise error_from_wire(answer["result"])
    _check_version(answer)
    return answer["result"]


def _check_version(message: Mapping[str, Any]) -> None:
    version = message.get("version", VERSION)
    if version != VERSION:
        other = message.get("software", "of another version")
        behind = "there" if str(version) < str(VERSION) else "here"
        raise BadInput(
            f"the other side of the master's socket is Moorage {other} and speaks "
            f"LUXI {version}, this side is Moorage {__version__} and speaks {VERSION}: "
            f"upgrade it {behind}",
            hint="install the same version, then: moorage master stop; moorage master "
            "start",
        )


def error_to_wire(error: MoorageError) -> list[Any]:
    """Return an error as answers and the results of failed jobs carry it."""
    name = "OpPrereqError" if isinstance(error, Refused) else "OpExecError"
    args = [error.message, error.ganeti] if isinstance(error, Refused) else []
    details = [] if PEER.get().ganeti else [error.to_json()]
    return [name, args or [error.message], *details]


def error_from_wire(wire: Any) -> MoorageError:  # noqa: ANN401
    """Return the error that came; whatever came, this does not fail."""
    match wire:
        case [str(), [*_], dict() as details]:
            return errors.from_json(details)
        case [str(name), [*args]]:
            return _ganeti_error(name, [str(arg) for arg in args])
        case _:
            return Failed(str(wire))


def _ganeti_error(name: str, args: list[str]) -> MoorageError:
    """Return the error of a peer that knows Ganeti's two elements only."""
    message = args[0] if args else name
    if name != "OpPrereqError":
        return Failed(message)
    code = args[1] if len(args) > 1 else ""
    kinds = (kind for kind in errors.BY_CODE.values() if issubclass(kind, Refused))
    found = (kind for kind in kinds if kind.ganeti == code and kind is not Refused)
    return next(found, Refused)(message)
