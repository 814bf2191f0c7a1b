# SPDX-License-Identifier: BSD-2-Clause
"""Load as the monitoring daemons of the nodes report it.

A report is JSON: ``{"name": COLLECTOR, "data": ..., ...}``. A file holds what all
nodes said, as ``[{"node": NAME, "reports": [REPORT, ...]}, ...]``.

====================  ===========================================================
collector             data
====================  ===========================================================
``cpu-avg-load``      ``{"cpu_total": LOAD, ...}`` of a node, in processors
``xen-cpu-avg-load``  ``{INSTANCE: LOAD, ...}``
====================  ===========================================================
"""

from collections.abc import Mapping
from typing import Any, Final

from moorage.htools.formats import jsontext
from moorage.htools.formats.jsontext import Value

PORT: Final = 1815
NODES: Final = "cpu-avg-load"
INSTANCES: Final = "xen-cpu-avg-load"
PATH: Final = "/1/report/default/{}"
"""Where a daemon answers for a collector."""
_MOST: Final = 1e12
"""Processors; no load is so large."""

Loads = dict[str, float]
"""Load by name: of a node under ``cpu-avg-load``, of instances under the other."""


def parse(text: str, file: str, collector: str) -> dict[str, Loads]:
    """Return what each node of a file said for a collector.

    A node whose report does not make sense is left out, as one that is silent.

    Raises
    ------
    BadInput
        One sentence with file, line and column where the file has not this form.
    """
    found: dict[str, Loads] = {}
    for entry in jsontext.parse(text, file).items():
        name = entry["node"].name()
        reports = [_named(report) for report in entry["reports"].items()]
        data = next((data for known, data in reports if known == collector), None)
        loads = None if data is None else _loads(data.data, name, collector)
        found.pop(name, None)
        if loads is not None:
            found[name] = loads
    return found


def report(text: str, node: str, collector: str) -> Loads | None:
    """Return what a daemon answered; None if it makes no sense.

    Raises
    ------
    BadInput
        If it is no report of that collector at all.
    """
    known, data = _named(jsontext.parse(text, f"the monitoring daemon of {node}"))
    return _loads(data.data, node, collector) if known == collector else None


def _named(value: Value) -> tuple[str, Value]:
    return value["name"].text(), value["data"]


def _loads(data: Any, node: str, collector: str) -> Loads | None:  # noqa: ANN401
    if not isinstance(data, Mapping):
        return None
    loads: dict[str, Any]
    loads = dict(data) if collector == INSTANCES else {node: data.get("cpu_total")}
    if not all(map(_is_load, loads.values())):
        return None
    return {name: float(load) for name, load in loads.items()}


def _is_load(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -_MOST <= value <= _MOST
