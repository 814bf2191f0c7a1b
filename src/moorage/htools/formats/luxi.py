# SPDX-License-Identifier: BSD-2-Clause
"""A cluster from the master's own answers to queries."""

import json
from collections.abc import Mapping
from typing import Any, Final

from moorage.errors import BadInput
from moorage.htools.fleet import Fleet
from moorage.htools.formats import rapi

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
}
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
    "forthcoming": "forthcoming",
}
_GROUP: Final = {
    name: name for name in ("uuid", "name", "alloc_policy", "ipolicy", "tags")
}
_FIELDS: Final = {"groups": _GROUP, "nodes": _NODE, "instances": _INSTANCE}
_NESTED: Final = ("ndparams.", "beparams.")

CALLS: Final[dict[str, tuple[str, list[Any]]]] = {
    "groups": ("Query", ["group", list(_GROUP), None]),
    "nodes": ("Query", ["node", list(_NODE), None]),
    "instances": ("Query", ["instance", list(_INSTANCE), None]),
    "info": ("QueryClusterInfo", []),
}
"""What to ask the master: method and arguments, by name of the answer."""


def parse(answers: Mapping[str, str]) -> Fleet:
    """Return the fleet of the answers to `CALLS`.

    Raises
    ------
    BadInput
        If an answer has not the form of a query's.
    """
    read = {name: json.loads(text) for name, text in answers.items()}
    try:
        rows = {name: _rows(read[name], _FIELDS[name]) for name in _FIELDS}
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"the master's answer has another form: {error}") from error
    texts = {name: json.dumps(value) for name, value in rows.items()}
    return rapi.parse(texts | {"info": answers["info"]})


def _rows(answer: dict[str, Any], fields: Mapping[str, str]) -> list[dict[str, Any]]:
    return [_row(cells, fields) for cells in answer["data"]]


def _row(cells: list[Any], fields: Mapping[str, str]) -> dict[str, Any]:
    """Return a row by name; a cell is (status, value), and 0 says it is known."""
    row: dict[str, Any] = {"ndparams": {}, "beparams": {}}
    for (status, value), name in zip(cells, fields.values(), strict=True):
        known = value if status == 0 else None
        if name.startswith(_NESTED):
            outer, inner = name.split(".")
            row[outer][inner] = known
        else:
            row[name] = known
    return row
