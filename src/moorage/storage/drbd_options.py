# SPDX-License-Identifier: BSD-2-Clause
"""What DRBD 8.4 is told of a mirrored disk besides its place: rates, barriers, buffers.

The names are Ganeti's. What no parameter says is left to DRBD. Options that decide who
writes, who is let in, or when a write is done, are Moorage's own: none of them goes
through the two parameters that take options as they are.
"""

import re
from collections.abc import Collection

from moorage.errors import BadInput

from .command import Params

PROTOCOL = "C"
"""A write is done when it is on both disks: the only one that two writers can have, and
that loses nothing when a node does."""
_DISK = frozenset(
    {"al-extents", "al-updates", "disable-write-same", "discard-zeroes-if-aligned"}
    | {"disk-timeout", "read-balancing", "rs-discard-granularity"}
)
_NET = {
    "connect-int": "10",
    "ko-count": "7",
    "max-buffers": "2048",
    "max-epoch-size": "2048",
    "ping-int": "10",
    "ping-timeout": "5",
    "rcvbuf-size": "0",
    "sndbuf-size": "0",
    "tcp-cork": "yes",
    "timeout": "60",
    "unplug-watermark": "128",
}
"""Each option of a connection, with what DRBD 8.4 takes where it is told nothing."""
_VALUE = re.compile(r"[A-Za-z0-9.-]+")
_BARRIERS = {"b": "disk-barrier", "f": "disk-flushes", "d": "disk-drain"}
_CONTROLLER = tuple(
    f"c-{one}"
    for one in ("plan-ahead", "fill-target", "delay-target", "max-rate", "min-rate")
)


def check(params: Params) -> None:
    """Raise `BadInput` for values that no disk could have."""
    barriers = str(params.get("disk-barriers", "n"))
    if barriers != "n" and not (barriers and set(barriers) <= _BARRIERS.keys()):
        raise BadInput(
            f"parameter 'disk-barriers' is n, or some of bfd, not '{barriers}'"
        )
    protocol = str(params.get("protocol", PROTOCOL))
    if protocol != PROTOCOL:
        raise BadInput(
            f"parameter 'protocol' is C, not '{protocol}': with another one a node "
            "that is lost takes writes along that its guest was told are done"
        )
    _custom(params, "disk-custom", _DISK)
    _custom(params, "net-custom", _NET)


def _custom(params: Params, name: str, known: Collection[str]) -> dict[str, str]:
    """Return the options that a parameter holds: ``--name=value``, or with a space."""
    words = str(params.get(name, "")).replace("=", " ").split()
    found = dict(zip(words[::2], words[1::2], strict=False))
    for word, value in found.items():
        if word.removeprefix("--") not in known or not word.startswith("--"):
            raise BadInput(
                f"parameter '{name}' cannot hold '{word}'",
                hint=f"it can hold --{', --'.join(sorted(known))}",
            )
        if not _VALUE.fullmatch(value):
            raise BadInput(f"parameter '{name}' cannot hold '{word} {value}'")
    if len(words) % 2:
        raise BadInput(f"parameter '{name}' holds '{words[-1]}' without a value")
    return {word.removeprefix("--"): value for word, value in found.items()}


def of_disk(params: Params) -> list[str]:
    """Return the options of ``drbdsetup attach`` and ``disk-options``.

    A rate that is given is the rate: DRBD would take it for a beginning only, and go
    on by a controller of its own.
    """
    found: dict[str, object] = {"on-io-error": "detach"}  # the other copy serves
    if params.get("dynamic-resync"):
        found |= {name: params[name] for name in _CONTROLLER if name in params}
    elif "resync-rate" in params:
        found |= {"c-plan-ahead": 0, "resync-rate": params["resync-rate"]}
    off = str(params.get("disk-barriers", "n"))
    found |= {option: "no" for letter, option in _BARRIERS.items() if letter in off}
    if params.get("meta-barriers"):
        found["md-flushes"] = "no"
    found |= _custom(params, "disk-custom", _DISK)
    return [f"--{name}={value}" for name, value in found.items()]


def of_connection(params: Params, *, all_of_them: bool = False) -> list[str]:
    """Return the options of ``drbdsetup connect`` and ``net-options``.

    Parameters
    ----------
    all_of_them
        Whether those that nobody gave are told, too: of a connection that is there,
        they may be others.
    """
    usual = _NET if all_of_them else {}
    found = {**usual, **_custom(params, "net-custom", _NET)}
    return [f"--{name}={value}" for name, value in found.items()]
