# SPDX-License-Identifier: BSD-2-Clause
"""Tables as Ganeti prints them: titles, columns joined by a space, numbers right."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from moorage.units import format_size

NORMAL, UNKNOWN, NODATA, UNAVAILABLE, OFFLINE = range(5)
"""Status of a cell."""
Cell = tuple[int, Any]
_SHORT = {UNKNOWN: "??", NODATA: "?", UNAVAILABLE: "-", OFFLINE: "*"}
_LONG = {
    UNKNOWN: "(unknown)",
    NODATA: "(nodata)",
    UNAVAILABLE: "(unavail)",
    OFFLINE: "(offline)",
}
_RIGHT = ("number", "float", "unit")


class Look(NamedTuple):
    """How a table is to look.

    Attributes
    ----------
    separator
        Stands between the columns, which are then not padded; None for people.
    units
        ``h``, ``m``, ``g``, ``t``; empty for what suits the separator.
    verbose
        Whether missing values are spelt out.
    """

    headers: bool = True
    separator: str | None = None
    units: str = ""
    verbose: bool = False


def table(
    columns: Sequence[Mapping[str, Any]], rows: Sequence[Sequence[Cell]], look: Look
) -> Iterator[str]:
    """Yield the lines of a table.

    Parameters
    ----------
    columns
        Definitions of the fields: ``title`` and ``kind`` count, and ``format`` where
        values are printed as of another kind.
    rows
        A (status, value) for each column.
    """
    lines = [[str(column["title"]) for column in columns]] if look.headers else []
    kinds = [str(column.get("format", column["kind"])) for column in columns]
    for row in rows:
        cells = zip(kinds, row, strict=True)
        lines.append([text(kind, cell, look) for kind, cell in cells])
    if look.separator is not None:
        yield from (look.separator.join(line) for line in lines)
    else:
        yield from _padded(lines, [kind in _RIGHT for kind in kinds])


def _padded(lines: Sequence[Sequence[str]], right: Sequence[bool]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    if widths and not right[-1]:
        widths[-1] = 0  # nothing follows: nothing to align
    for line in lines:
        cells = zip(line, widths, right, strict=True)
        yield " ".join(f"{c:>{w}}" if r else f"{c:{w}}" for c, w, r in cells)


def text(kind: str, cell: Cell, look: Look) -> str:
    """Return a cell as a table shows it."""
    status, value = cell
    if status != NORMAL:
        return (_LONG if look.verbose else _SHORT)[status]
    if kind == "unit":
        units = look.units or ("h" if look.separator is None else "m")
        return format_size(value, units)
    return _FORMATS.get(kind, plain)(value)


def moment(value: Any) -> str:  # noqa: ANN401
    """Return a time, seconds or (seconds, microseconds), in this place's zone."""
    if value is None:
        return "-"
    seconds = value[0] if isinstance(value, list | tuple) else value
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def plain(value: Any) -> str:  # noqa: ANN401
    """Return a value of no special kind: lists with commas, maps as ``key=value``."""
    if value is None:
        return "-"
    if isinstance(value, list | tuple):
        return ",".join(plain(item) for item in value)
    if isinstance(value, Mapping):
        pairs = (f"{key}={plain(item)}" for key, item in value.items())
        return ", ".join(pairs) or "(empty)"
    return str(value)


def _bool(value: Any) -> str:  # noqa: ANN401
    return "Y" if value else "N"


def _connections(value: Any) -> str:  # noqa: ANN401
    """Return node groups, each with how a network is connected to it."""
    return ", ".join(f"{one[0]} ({', '.join(one[1:])})" for one in value)


def _items(value: Any) -> str:  # noqa: ANN401
    return ",".join(str(item) for item in value)


def _moments(value: Any) -> str:  # noqa: ANN401
    return str([moment(one) for one in value])


_FORMATS: Mapping[str, Callable[[Any], str]] = {
    "bool": _bool,
    "timestamp": moment,
    "connections": _connections,
    "items": _items,
    "literal": str,
    "moments": _moments,
}
_HOW: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "filter": {"literal": ("predicates", "action", "reason_trail")},
    "group": {
        "literal": (
            *("custom_diskparams", "custom_ipolicy", "custom_ndparams"),
            *("diskparams", "ipolicy", "tags"),
        )
    },
    "instance": {
        "literal": (
            *("beparams", "console", "custom_beparams", "custom_hvparams"),
            *("custom_nicparams", "custom_osparams", "disk.names", "disk.spindles"),
            *("disk.uuids", "hvparams", "nic.names", "nic.networks.names"),
            *("nic.uuids", "nic.vlans", "osparams"),
        ),
        "items": (
            *("disk.sizes", "nic.bridges", "nic.ips", "nic.links", "nic.macs"),
            *("nic.modes", "nic.networks"),
        ),
    },
    "job": {
        "literal": (
            *("end_ts", "oplog", "oppriority", "opresult", "ops", "opstatus"),
            *("received_ts", "start_ts"),
        ),
        "moments": ("opend", "opexec", "opstart"),
    },
    "network": {"connections": ("group_list",)},
    "node": {"literal": ("custom_ndparams", "ndparams")},
}
"""Fields whose values are printed in another way than others of their kind, as scripts
of Ganeti's read them: lists and maps as Python writes them, or with commas."""


def formats(resource: str) -> dict[str, str]:
    """Return how fields of a resource are printed that are not as others of a kind."""
    how = _HOW.get(resource, {})
    return {name: word for word, names in how.items() for name in names}
