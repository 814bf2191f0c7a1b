# SPDX-License-Identifier: BSD-2-Clause
"""What QEMU's own Ceph client must know: configuration and key, which root alone has.

The guest's user can read neither the keyring nor, maybe, the configuration. So the
agent reads them, for the one client that the drive names, and QEMU gets a text without
a name that has both.
"""

import os
import subprocess
from pathlib import Path

from moorage.errors import Failed
from moorage.storage.uri import Node

_CONF = "/etc/ceph/ceph.conf"
_CLIENT = "admin"
_PATIENCE = 10.0


def described(node: Node) -> int:
    """Return a descriptor of what a client of Ceph's must know to reach an image.

    Whoever has the descriptor can read it, by its path below ``/proc``, and nobody can
    write to it.

    Parameters
    ----------
    node
        Options of a block node of the driver ``rbd``.

    Raises
    ------
    Failed
        If the configuration cannot be read.
    """
    made = os.memfd_create("ceph.conf", os.MFD_CLOEXEC)
    with open(made, "wb", closefd=False) as file:
        file.write(_text(node.get("conf", _CONF), node.get("user", _CLIENT)))
    os.fchmod(made, 0o444)
    return made


def wipe(descriptor: int) -> None:
    """Empty what :func:`described` made: whoever still has it reads nothing."""
    os.ftruncate(descriptor, 0)


def _text(conf: str, client: str) -> bytes:
    try:
        told = Path(conf).read_bytes()
    except OSError as error:
        raise Failed(
            f"{conf} cannot be read: {error.strerror}", hint="gnt-storage diagnose"
        ) from None
    key = _key(conf, f"client.{client}")
    return told + (f"\n[client.{client}]\nkey = {key}\n".encode() if key else b"")


def _key(conf: str, name: str) -> str:
    """Return a client's key; empty where it needs none, or none is here."""
    looks = ("--conf", conf, "--name", name, "--show-config-value", "keyring")
    for keyring in _asked("ceph-conf", *looks).split(","):
        if keyring and Path(keyring.strip()).exists():
            words = (keyring.strip(), "--name", name, "--print-key")
            key = _asked("ceph-authtool", *words)
            if key:
                return key
    return ""


def _asked(*argv: str) -> str:
    """Return what a program of Ceph's prints; nothing if it cannot tell."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=_PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
