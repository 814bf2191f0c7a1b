# SPDX-License-Identifier: BSD-2-Clause
"""Frames that nobody should send: over LUXI, in TLS and before it.

Each kind is a function of dice and of where to send; it leaves nothing open but what
it hands to the crowd, which lingers for a while.
"""

import json
import random
import socket
import ssl
import struct
import zlib
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from moorage.api.luxi_messages import END, encode_request

from .rapi_process import LOGIN, trusting

_AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER of who hangs up without a farewell."""
_CROWD = 60
METHODS = (
    *("SubmitJob", "SubmitManyJobs", "SubmitJobOnce", "QueryJobs", "Query"),
    *("WaitForJobChange", "WaitForEvents", "CancelJob", "QueryTags", "DrawTicket"),
    *("ConnectInstance", "QueryFields", "QueryClusterInfo", "AutoArchiveJobs", "x"),
)
ODD = (
    *(None, True, -1, 0, 2**63, 2**64, 10**40, 1e308, "", " ", "\0", "\n", "a" * 9000),
    *("../../etc/passwd", "\x1b[2J", [], {}, [[]], [[[]]], {"a": None}, ["x"] * 300),
    *([{"OP_ID": "OP_DISK_ADD"}], [{"OP_ID": 1}], ["&", ["|"]], ["=", "name", []]),
)


@dataclass
class Target:
    """What is attacked.

    Attributes
    ----------
    crowd
        Connections that are left open; the oldest leave.
    """

    luxi: tuple[Path, ...]
    port: int
    crowd: deque[socket.socket] = field(default_factory=deque)

    def linger(self, one: socket.socket) -> socket.socket:
        """Leave a connection open for some time."""
        self.crowd.append(one)
        if len(self.crowd) > _CROWD:
            self.crowd.popleft().close()
        return one

    def leave(self) -> None:
        """Hang up all that linger."""
        while self.crowd:
            self.crowd.pop().close()


Dice = random.Random
Kind = Callable[[Dice, Target], None]


def attack(dice: Dice, target: Target) -> str:
    """Send one malformed thing; return its kind."""
    kind = dice.choice(KINDS)
    with suppress(OSError, EOFError):  # who sends such things is hung up on
        kind(dice, target)
    return kind.__name__


# -- LUXI ------------------------------------------------------------------------------


def _master(dice: Dice, target: Target) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(10)
    try:
        made.connect(str(dice.choice(target.luxi)))
    except OSError:
        made.close()
        raise
    return made


def _said(dice: Dice, target: Target, text: bytes) -> None:
    """Say something to the master; listen, or hang up in one of some ways."""
    with _master(dice, target) as link:
        link.sendall(text)
        _part(dice, link)


def _part(dice: Dice, link: socket.socket) -> None:
    way = dice.randrange(4)
    if way == 0:
        link.shutdown(socket.SHUT_WR)
    if way <= 1:
        link.settimeout(0.3)
        link.recv(65536)
    if way == 3:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)


def _request(dice: Dice) -> bytes:
    """Return a request of the right form with odd arguments."""
    args = [dice.choice(ODD) for _ in range(dice.randrange(5))]
    caller = dice.choice((*_CALLERS, None))
    return encode_request(dice.choice(METHODS), args, caller)


_CALLERS = (
    *({}, {"name": ""}, {"name": "a\nb", "role": 4}, {"name": "x", "role": 99}),
    *({"name": "x", "role": -1}, {"name": "x" * 70_000, "role": 1}),
    *({"name": "x", "role": "root"}, {"name": "x", "role": 4, "uid": 0}),
    {"name": "x", "role": 4},
)


def luxi_odd(dice: Dice, target: Target) -> None:
    _said(dice, target, _request(dice))


def luxi_noise(dice: Dice, target: Target) -> None:
    _said(dice, target, dice.randbytes(dice.choice((1, 50, 5000))) + END)


def luxi_shape(dice: Dice, target: Target) -> None:
    text = json.dumps(dice.choice((*ODD, {"method": dice.choice(ODD), "args": {}})))
    _said(dice, target, text.encode() + END)


def luxi_nested(dice: Dice, target: Target) -> None:
    deep = dice.choice((b"[", b'{"a":', b'{"method":"Query","args":['))
    _said(dice, target, deep * dice.choice((50, 3000, 100_000)) + END)


def luxi_cut(dice: Dice, target: Target) -> None:
    text = _request(dice)
    _said(dice, target, text[: dice.randrange(len(text))])


def luxi_codes(dice: Dice, target: Target) -> None:
    text = _request(dice)[:-1].decode().replace("a", "\xe4")
    code = dice.choice(("utf-16", "utf-32", "latin-1", "utf-8-sig", "utf-7"))
    _said(dice, target, text.encode(code, "replace") + END)


def luxi_surrogates(dice: Dice, target: Target) -> None:
    text = _request(dice).replace(b'"', b'"\\ud800', dice.randrange(1, 9))
    _said(dice, target, text)


def luxi_pipelined(dice: Dice, target: Target) -> None:
    _said(dice, target, b"".join(_request(dice) for _ in range(100)))


def luxi_huge(dice: Dice, target: Target) -> None:
    piece, number = b"x" * (1 << 20), dice.choice((1, 2, 2, 2, 70))
    with _master(dice, target) as link:
        for _ in range(number):
            link.sendall(piece)
        _part(dice, link)


def luxi_slow(dice: Dice, target: Target) -> None:
    """Say a little, and nothing more."""
    target.linger(_master(dice, target)).sendall(_request(dice)[: dice.randrange(20)])


def luxi_deaf(dice: Dice, target: Target) -> None:
    """Ask for much, and read nothing."""
    many = encode_request("QueryClusterInfo", []) * 30
    target.linger(_master(dice, target)).sendall(many)


def luxi_waits(dice: Dice, target: Target) -> None:
    """Wait for what never happens, and hang up."""
    _said(dice, target, encode_request("WaitForEvents", [None, 60.0]))


# -- before TLS ------------------------------------------------------------------------


def _bare(target: Target) -> socket.socket:
    return socket.create_connection(("127.0.0.1", target.port), 10)


def tls_noise(dice: Dice, target: Target) -> None:
    with _bare(target) as link:
        link.sendall(dice.choice((b"\x16\x03\x01", b"")) + dice.randbytes(300))
        _part(dice, link)


def tls_plain(dice: Dice, target: Target) -> None:
    with _bare(target) as link:
        link.sendall(b"GET /2 HTTP/1.1\r\nHost: x\r\n\r\n")
        _part(dice, link)


def tls_old(dice: Dice, target: Target) -> None:
    context = trusting()
    context.set_ciphers("ALL:@SECLEVEL=0")
    version = dice.choice((ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1))
    context.minimum_version, context.maximum_version = version, version
    with _bare(target) as link, context.wrap_socket(link):
        pass


def tls_cut(dice: Dice, target: Target) -> None:
    """Begin a handshake, and say no more of it."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    hello = trusting().wrap_bio(incoming, outgoing, server_hostname="x")
    with suppress(ssl.SSLWantReadError):
        hello.do_handshake()
    text = outgoing.read()
    target.linger(_bare(target)).sendall(text[: dice.randrange(len(text) + 1)])


def tls_silent(_dice: Dice, target: Target) -> None:
    target.linger(_bare(target))


# -- HTTPS -----------------------------------------------------------------------------


def _https(target: Target) -> ssl.SSLSocket:
    return _TRUSTING.wrap_socket(_bare(target))


_TRUSTING = trusting()


def _sent(dice: Dice, target: Target, *texts: bytes) -> None:
    with _https(target) as link:
        for text in texts:
            link.sendall(text)
        _part(dice, link)


def _head(dice: Dice, path: str = "", *lines: str, method: str = "") -> bytes:
    """Return the head of a request, mostly of somebody who may come in."""
    path = path or dice.choice(("/2/info", "/2/instances?bulk=1", "/2/jobs", "/2/x"))
    method = method or dice.choice(("GET", "GET", "PUT", "POST", "DELETE", "PATCH"))
    login = (f"Authorization: {LOGIN}",) if dice.random() < 0.8 else ()
    text = (f"{method} {path} HTTP/1.1", "Host: x", *login, *lines, "", "")
    return "\r\n".join(text).encode("latin-1")


def http_noise(dice: Dice, target: Target) -> None:
    _sent(dice, target, dice.randbytes(dice.choice((1, 100, 9000))) + b"\r\n\r\n")


def http_heads(dice: Dice, target: Target) -> None:
    """Send one of many heads that are none."""
    bombs = (
        "A: " + "x" * 100_000,
        "\r\n".join(f"H{n}: x" for n in range(3000)),
        "A: b\r\n folded",
        "No colon",
        "A\0: b",
        "A: \xe9\xff\x01",
        "Content-Length: -1",
        "Content-Length: 1\r\nContent-Length: 2",
        "Content-Length: 99999999999999999999999",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked, chunked",
        "Transfer-Encoding: \x0bchunked",
        "Expect: 100-continue\r\nContent-Length: 10",
        "Expect: cheese",
        "Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: x",
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13",
        "Range: bytes=0-1,2-3",
        "Authorization: Basic " + "A" * 7000,
        "Authorization: Bearer \xff",
        "Idempotency-Key: " + "k" * 7000,
        "Cookie: " + "a=b; " * 1000,
        "Content-Type: application/json; charset=\xff\r\nContent-Length: 2",
        "Content-Type: multipart/form-data; boundary=\xff\r\nContent-Length: 2",
    )
    _sent(dice, target, _head(dice, "", dice.choice(bombs)) + b"{}")


def http_lines(dice: Dice, target: Target) -> None:
    login = f" HTTP/1.1\r\nHost: x\r\nAuthorization: {LOGIN}\r\n\r\n".encode()
    line = dice.choice(
        (
            b"GET /" + b"x/" * 30_000,
            b"GET /2/info?" + b"reason=a&" * 6000,
            b"GET /2/jobs?bulk=%ff%00%0a",
            b"GET /2/instances/%00%2e%2e%2f%ed%a0%80",
            b"GET http://evil/2",
            b"GET //evil/2",
            b"GET *",
            b"OPTIONS *",
            b"CONNECT x:1",
            b"TRACE /2",
            b"HEAD /2",
            b"G\xe4T /2",
            b"get /2",
            b"PRI *",
            b"GET /2/../../etc/passwd",
            b"GET /2/query/instance?fields=" + b"name," * 3000,
            b"GET /2\t/info",
            b"GET",
            b"",
        )
    )
    _sent(dice, target, line + login)


def http_bodies(dice: Dice, target: Target) -> None:
    """Send one of many bodies that are none."""
    body = dice.choice(
        (
            b"[" * 100_000,
            b'{"a":' * 20_000,
            '{"a": "\xe4"}'.encode("latin-1"),
            '{"a": "\xe4"}'.encode("utf-16"),
            b'{"a": "\\ud800"}',
            b"\xef\xbb\xbf{}",
            b'{"a": 1, "a": 2}',
            b'{"a": NaN}',
            b'{"a": ' + b"9" * 100_000 + b"}",
            b'{"a": "' + b"x" * 3_000_000 + b'"}',
            b"[" + b"[]," * 300_000 + b"[]]",
            zlib.compress(b" " * 30_000_000),
        )
    )
    code = ["Content-Encoding: deflate"] if body[:1] == b"\x78" else []
    path = dice.choice(("/2/instances", "/2/disks", "/2/query/instance", "/2/modify"))
    lines = ("Content-Type: application/json", f"Content-Length: {len(body)}", *code)
    end = len(body) if dice.random() < 0.7 else dice.randrange(len(body))
    head = _head(dice, path, *lines, method=dice.choice(("POST", "PUT")))
    _sent(dice, target, head, body[:end])


def http_chunks(dice: Dice, target: Target) -> None:
    chunk = dice.choice(
        (
            *(b"-1\r\n", b"ffffffffffffffffff\r\n", b"zz\r\n", b"2;" + b"x" * 100_000),
            *(b"2\r\n{}\r\n0\r\n" + b"A: b\r\n" * 5000, b"2\r\n{}x", b"1\r\n{\r\n"),
            b"1\r\n \r\n" * 20_000 + b"0\r\n\r\n",
        )
    )
    lines = ("Content-Type: application/json", "Transfer-Encoding: chunked")
    _sent(dice, target, _head(dice, "/2/disks", *lines, method="POST"), chunk)


def http_pipelined(dice: Dice, target: Target) -> None:
    _sent(dice, target, b"".join(_head(dice) for _ in range(60)))


def http_slow(dice: Dice, target: Target) -> None:
    text = _head(dice)
    target.linger(_https(target)).sendall(text[: dice.randrange(len(text))])


def http_deaf(dice: Dice, target: Target) -> None:
    """Ask for much, and read nothing."""
    many = _head(dice, "/2/openapi.json", method="GET") * 30
    target.linger(_https(target)).sendall(many)


def sse_abused(dice: Dice, target: Target) -> None:
    """Listen, and do not; or begin where nothing is."""
    last = dice.choice(("", "-1", "x", "9" * 30, "0", "1", "\xb2", "1e3"))
    lines = (f"Last-Event-ID: {last}",) if last else ()
    path = dice.choice(("/2/events", "/2/events?after=0", "/2/events?job=\u0661"))
    text = _head(dice, path.encode().decode("latin-1"), *lines, method="GET")
    if dice.random() < 0.3:
        target.linger(_https(target)).sendall(text)
    else:
        _sent(dice, target, text)


KINDS: tuple[Kind, ...] = (
    *(luxi_odd, luxi_noise, luxi_shape, luxi_nested, luxi_cut, luxi_codes),
    *(luxi_surrogates, luxi_pipelined, luxi_huge, luxi_slow, luxi_deaf, luxi_waits),
    *(tls_noise, tls_plain, tls_old, tls_cut, tls_silent),
    *(http_noise, http_heads, http_lines, http_bodies, http_chunks),
    *(http_pipelined, http_slow, http_deaf, sse_abused),
)
