# SPDX-License-Identifier: BSD-2-Clause
"""A network of a test's own, in which nobody else lays cables."""

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NETWORK = 0x40000000
"""``CLONE_NEWNET`` of ``sched.h``."""
_LIBC = ctypes.CDLL(None, use_errno=True)


@contextmanager
def own_network() -> Iterator[None]:
    """Give this thread, and what it starts, a network that has loopback alone.

    A browser ends what it is loading whenever an interface comes or goes. Whoever is
    not root keeps the network that there is.
    """
    if os.geteuid():
        yield
        return
    before = os.open(Path("/proc/thread-self/ns/net"), os.O_RDONLY)
    try:
        _do(_LIBC.unshare(_NETWORK))
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        yield
    finally:
        _do(_LIBC.setns(before, _NETWORK))
        os.close(before)


def _do(status: int) -> None:
    if status:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
