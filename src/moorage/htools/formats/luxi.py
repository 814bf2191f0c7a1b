# SPDX-License-Identifier: BSD-2-Clause
"""A cluster from the master's own answers to queries."""

from collections.abc import Mapping
from typing import Any, Final

from moorage.htools.fleet import Fleet
from moorage.htools.formats import jsontext, rapi
from moorage.htools.formats.jsontext import Value

_NODE: Final = {
    "name": "name",
    "mtotal": "mtotal",
    "mnode": "mnode",
    "mfree": "mfree",
    "dtotal": "dtotal",
    "dfree": "dfree",
    "ctotal": "ctotal",
    "cnos": "cnos",
    "offline": "offline",
    "drained": "drained",
    "vm_capable": "vm_capable",
    "ndp/spindle_count": "ndparams.spindle_count",
    "group.uuid": "group.uuid",
    "tags": "tags",
    "ndp/exclusive_storage": "ndparams.exclusive_storage",
    "sptotal": "sptotal",
    "spfree": "spfree",
    "ndp/cpu_speed": "cpu_speed",
    "storage": "storage",
}
# Ganeti's master knows no storage, disk.templates, disk.sunits: the cell says so.
_INSTANCE: Final = {
    "name": "name",
    "disk_usage": "disk_usage",
    "be/memory": "beparams.memory",
    "be/vcpus": "beparams.vcpus",
    "status": "status",
    "pnode": "pnode",
    "snodes": "snodes",
    "tags": "tags",
    "be/auto_balance": "beparams.auto_balance",
    "disk_template": "disk_template",
    "be/spindle_use": "beparams.spindle_use",
    "disk.sizes": "disk.sizes",
    "disk.spindles": "disk.spindles",
    "disk.templates": "disk.templates",
    "disk.sunits": "disk.sunits",
    "forthcoming": "forthcoming",
}
_GROUP: Final = {
    name: name for name in ("uuid", "name", "alloc_policy", "ipolicy", "tags")
}
_FIELDS: Final = {"groups": _GROUP, "nodes": _NODE, "instances": _INSTANCE}
_NESTED: Final = ("ndparams", "beparams")
_FIGURES: Final = ("mtotal", "mnode", "mfree", "dtotal", "dfree", "ctotal", "cnos")

CALLS: Final[dict[str, tuple[str, list[Any]]]] = {
    "groups": ("Query", ["group", list(_GROUP), None]),
    "nodes": ("Query", ["node", list(_NODE), None]),
    "instances": ("Query", ["instance", list(_INSTANCE), None]),
    "info": ("QueryClusterInfo", []),
}
"""What to ask the master: method and arguments, by name of the answer."""


def parse(answers: Mapping[str, Any]) -> Fleet:
    """Return the fleet of the answers to `CALLS`, decoded.

    A node that does not answer has no figures. It is taken as offline, with a warning,
    as the master does when it chooses a node.

    Raises
    ------
    BadInput
        If an answer has not the form of a query's; it names the value by its path.
    """
    rows = {name: _rows(answers[name], name, _FIELDS[name]) for name in _FIELDS}
    silent = [row for row in rows["nodes"] if _is_silent(row)]
    for row in silent:
        row["offline"] = True
    values = {name: jsontext.decoded(rows[name], name) for name in rows}
    values["info"] = jsontext.decoded(answers["info"], "info")
    fleet = rapi.assembled(values)
    warnings = [_SILENT.format(row["name"]) for row in silent]
    return fleet.replaced(warnings=(*fleet.warnings, *warnings))


_SILENT: Final = "node {} gives no figures: it is taken as offline"


def _is_silent(row: Mapping[str, Any]) -> bool:
    """Tell whether a node that should answer gave none of its figures."""
    expected = row["offline"] is False and row["vm_capable"] is not False
    return expected and all(row[name] is None for name in _FIGURES)


def _rows(
    answer: Any,  # noqa: ANN401 - whatever came
    name: str,
    fields: Mapping[str, str],
) -> list[dict[str, Any]]:
    data = jsontext.decoded(answer, name)["data"]
    return [_row(line, fields) for line in data.items()]


def _row(line: Value, fields: Mapping[str, str]) -> dict[str, Any]:
    """Return a row by name; a cell is (status, value), and 0 says it is known."""
    row: dict[str, Any] = {"ndparams": {}, "beparams": {}}
    cells = line.items()
    if len(cells) != len(fields):
        raise line.bad(f"has {len(cells)} fields instead of {len(fields)}")
    for cell, name in zip(cells, fields.values(), strict=True):
        pair = cell.items()
        if len(pair) != 2:
            raise cell.bad("is not a pair of status and value")
        known = pair[1].data if pair[0].integer() == 0 else None
        outer, dot, inner = name.partition(".")
        if dot and outer in _NESTED:
            row[outer][inner] = known
        else:
            row[name] = known
    # The master counts what should run: started again, it must have its memory.
    row["promised"] = row.get("status") == "ERROR_down"
    return row
