# SPDX-License-Identifier: BSD-2-Clause
"""Migrations that nobody reads or takes part in but the two QEMUs: TLS with one key.

The destination makes the key, for one migration. It gets to the source over the
connections of the cluster, which show certificates on both sides. Who connects without
it gets nothing, and does not stand in the way of who has it.
"""

import secrets
from contextlib import suppress

from .guest_dir import Home
from .monitor import Monitor, Refusal

_KEY, _GROUP = "keys.psk", "dh-params.pem"
"""Names of the files that QEMU looks for."""
_NAME = "migration"
_USER = "qemu"
"""Whom the key is for: QEMU's own default."""
_BYTES = 32
_FFDHE2048 = """\
-----BEGIN DH PARAMETERS-----
MIIBCAKCAQEA//////////+t+FRYortKmq/cViAnPTzx2LnFg84tNpWp4TZBFGQz
+8yTnc4kmz75fS/jY2MMddj2gbICrsRhetPfHtXV/WVhJDP1H18GbtCFY2VVPe0a
87VXE15/V8k1mE8McODmi3fipona8+/och3xWKE2rec1MKzKT0g6eXq8CrGCsyT7
YdEIqUuyyOP7uWrat2DX9GgdT0Kj3jlN9K5W7edjcrsZCwenyO4KbXCeAvzhzffi
7MA0BM0oNC9hkXL+nOmFg/+OTxIy7vKBg8P+OxtMb61zO7X8vC7CIAXFjvGDfRaD
ssbzSibBsu/6iGtCOGEoXJf//////////wIBAg==
-----END DH PARAMETERS-----
"""
"""The group of RFC 7919; without it QEMU would look for one of its own for seconds."""


async def receive(monitor: Monitor, home: Home) -> str:
    """Let a guest take a migration from the holder of a new key only; return that."""
    key = secrets.token_hex(_BYTES)
    home.write(_GROUP, _FFDHE2048, shared=True)
    await _speak(monitor, home, key, "server")
    return key


async def send(monitor: Monitor, home: Home, key: str) -> None:
    """Let a guest migrate to where the key is known, and nowhere else."""
    await _speak(monitor, home, key, "client")


async def _speak(monitor: Monitor, home: Home, key: str, side: str) -> None:
    home.write(_KEY, f"{_USER}:{key}\n", shared=True)
    with suppress(Refusal):  # of an earlier attempt, if there was one
        await monitor.ask("object-del", id=_NAME)
    await monitor.ask(
        "object-add",
        qom_type="tls-creds-psk",
        id=_NAME,
        dir=".",  # where QEMU works: its user may not come there from above
        endpoint=side,
    )
    await monitor.ask("migrate-set-parameters", tls_creds=_NAME, tls_hostname=_NAME)
