# SPDX-License-Identifier: BSD-2-Clause
"""A node that has its own key, and answers what no agent would."""

import gzip
import http.server
import ssl

from hostile import Hostile

BOMB = gzip.compress(bytes(512 * 1024 * 1024), 1)
"""512 MiB that arrive as two."""
CODES = ("stale", "unreachable", "refused", "failed", "conflict", "error", "no-such")
"""Of errors; the last one is none."""


def rogue_server(
    address: tuple[str, int], context: ssl.SSLContext, hostile: Hostile
) -> http.server.ThreadingHTTPServer:
    """Return a server that takes a node's place."""

    class Rogue(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body, headers = _bad_answer(hostile)
            self.send_response(hostile.dice.choice((200, 200, 200, 302, 500)))
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", f"{len(body)}")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(address, Rogue)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    return server


def _bad_answer(hostile: Hostile) -> tuple[bytes, dict[str, str]]:
    key = hostile.dice.choice(("result", "error", "progress", hostile.word()))
    roll = hostile.dice.random()
    if roll < 0.1:
        return b"x" * 2_000_000, {}
    if roll < 0.15:
        return b"", {"Location": "http://127.0.0.1:9/x"}
    if roll < 0.25:
        return BOMB, {"Content-Encoding": "gzip"}
    if roll < 0.4:
        facts = {"version": "0", "memory_total": 1, "memory_free": 1, "cpus": 1}
        return hostile.text({key: hostile.spoilt(facts)}) + b"\n", {}
    if roll < 0.6:
        facts = {"term": 9, "seen": 10, "sent": False, "silent": True, "killed": True}
        told = {"code": hostile.dice.choice(CODES), "message": hostile.word()}
        error = {**told, "hint": hostile.word(), "facts": facts}
        return hostile.text({"error": error}) + b"\n", {}
    lines = [hostile.text({key: hostile.value()}) for _ in range(3)]
    return b"\n".join(lines) + b"\n", {}
