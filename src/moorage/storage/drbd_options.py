# SPDX-License-Identifier: BSD-2-Clause
"""What DRBD 8.4 is told of a mirrored disk besides its place: rates, barriers, buffers.

The names are Ganeti's. What no parameter says is left to DRBD. Options that decide who
writes, who is let in, or when a write is done, are Moorage's own: none of them goes
through the two parameters that take options as they are.
"""

import re
from collections.abc import Mapping

from moorage.errors import BadInput

from .command import Params

Values = tuple[int, int] | re.Pattern[str]
"""The least and the largest number, or the words, that an option takes."""

PROTOCOL = "C"
"""A write is done when it is on both disks: the only one that two writers can have, and
that loses nothing when a node does."""
_YES_NO = re.compile(r"yes|no")
_READS = re.compile(
    r"prefer-(local|remote)|round-robin|least-pending|when-congested-remote|"
    r"(32|64|128|256|512)K-striping|1M-striping"
)
_BUFFER = (0, 10 << 20)
"""Bytes; 0 is as the kernel sees fit."""
_DISK: Mapping[str, Values] = {
    "al-extents": (67, 65534),
    "al-updates": _YES_NO,
    "disable-write-same": _YES_NO,
    "discard-zeroes-if-aligned": _YES_NO,
    "disk-timeout": (0, 6000),
    "read-balancing": _READS,
    "rs-discard-granularity": (0, 1 << 20),
}
_RANGES: Mapping[str, Values] = {
    "connect-int": (1, 120),
    "ko-count": (0, 200),
    "max-buffers": (32, 131072),
    "max-epoch-size": (1, 20000),
    "ping-int": (1, 120),
    "ping-timeout": (1, 300),
    "rcvbuf-size": _BUFFER,
    "sndbuf-size": _BUFFER,
    "tcp-cork": _YES_NO,
    "timeout": (1, 600),
    "unplug-watermark": (1, 131072),
}
"""What DRBD 8.4 takes: it would refuse another value whenever a guest starts."""
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
_NUMBER = re.compile(r"([0-9]{1,12})([kmg]?)", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
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
    _custom(params, "net-custom", _RANGES)


def _custom(params: Params, name: str, known: Mapping[str, Values]) -> dict[str, str]:
    """Return the options that a parameter holds: ``--name=value``, or with a space."""
    words = str(params.get(name, "")).replace("=", " ").split()
    found = dict(zip(words[::2], words[1::2], strict=False))
    for word, value in found.items():
        if word.removeprefix("--") not in known or not word.startswith("--"):
            raise BadInput(
                f"parameter '{name}' cannot hold '{word}'",
                hint=f"it can hold --{', --'.join(sorted(known))}",
            )
        if not _fits(value, known[word.removeprefix("--")]):
            raise BadInput(
                f"parameter '{name}' cannot hold '{word} {value}'",
                hint=_told(word, known[word.removeprefix("--")]),
            )
    if len(words) % 2:
        raise BadInput(f"parameter '{name}' holds '{words[-1]}' without a value")
    return {word.removeprefix("--"): value for word, value in found.items()}


def _fits(value: str, values: Values) -> bool:
    if isinstance(values, re.Pattern):
        return values.fullmatch(value) is not None
    found = _NUMBER.fullmatch(value)
    least, most = values
    return (
        found is not None and least <= int(found[1]) * _UNITS[found[2].lower()] <= most
    )


def _told(word: str, values: Values) -> str:
    if isinstance(values, re.Pattern):
        return f"drbdsetup's manual says what {word} takes"
    return f"{word} is a number from {values[0]} to {values[1]}"


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
    found = {**usual, **_custom(params, "net-custom", _RANGES)}
    return [f"--{name}={value}" for name, value in found.items()]
