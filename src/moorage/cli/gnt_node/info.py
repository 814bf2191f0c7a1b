# SPDX-License-Identifier: BSD-2-Clause
"""What nodes are like."""

from typing import Any

from moorage.cli.command import Call, Command
from moorage.cli.follow import fetch
from moorage.cli.listing import Listing
from moorage.cli.options import DEBUG, JSON
from moorage.cli.table import moment
from moorage.cli.yamlish import defaulted

from .options import NODES

LISTING = Listing(
    "node",
    ("name", "dtotal", "dfree", "mtotal", "mnode", "mfree", "pinst_cnt", "sinst_cnt"),
)
_INFO = [
    *("name", "uuid", "pip", "sip", "group", "role", "master_candidate"),
    *("drained", "offline", "powered", "master_capable", "vm_capable"),
    *("silence", "certificate_ends", "accelerator", "accelerator.reason", "storage"),
    *("pinst_list", "sinst_list", "ndparams", "custom_ndparams", "tags"),
    *("serial_no", "ctime", "mtime"),
]


def _shown(node: dict[str, Any]) -> dict[str, Any]:
    return {
        "Node name": node["name"],
        "UUID": node["uuid"],
        "primary ip": node["pip"],
        "secondary ip": node["sip"],
        "node group": node["group"],
        "role": node["role"],
        "master candidate": node["master_candidate"],
        "drained": node["drained"],
        "offline": node["offline"],
        "powered": node["powered"],
        "master_capable": node["master_capable"],
        "vm_capable": node["vm_capable"],
        **({"no answer": node["silence"]} if node["silence"] else {}),
        "certificate until": _until(node["certificate_ends"]),
        "accelerator": _accelerator(node),
        "storage units": [_unit(unit) for unit in node["storage"] or ()] or "",
        "primary for instances": node["pinst_list"] or "",
        "secondary for instances": node["sinst_list"] or "",
        "node parameters": _parameters(node),
        "tags": ", ".join(node["tags"] or ()),
        "Serial number": node["serial_no"],
        "Creation time": moment(node["ctime"]),
        "Modification time": moment(node["mtime"]),
    }


def _parameters(node: dict[str, Any]) -> dict[str, Any]:
    return defaulted(node["custom_ndparams"] or {}, node["ndparams"] or {})


def _unit(unit: dict[str, Any]) -> str:
    """Return a storage unit with its room; what nobody knows is unknown, not 0."""
    kind, key, _ = unit["sunit"]
    sizes = (unit["free"], unit["total"])
    free, total = ("unknown" if one is None else f"{one} MiB" for one in sizes)
    told = f"free {free} of {total}" if sizes != (None, None) else "room unknown"
    return f"{kind} {key}: {told}"


def _until(ends: float | None) -> str:
    return moment(ends) if ends else ""


def _accelerator(node: dict[str, Any]) -> str:
    """Return what executes guests and how that is known; empty if it is not."""
    name, reason = node["accelerator"], node["accelerator.reason"]
    return f"{name} ({reason})" if name and reason else ""


def _try_accelerator(call: Call) -> None:
    rows = fetch(call, node_names=call.words) or []
    told = (f"{name}: {accelerator} ({reason})" for name, accelerator, reason in rows)
    call.show(rows, told)


INFO = LISTING.info(_INFO, _shown)
TRY_ACCELERATOR = Command(
    "try-accelerator",
    _try_accelerator,
    NODES,
    (JSON, DEBUG),
    examples={"gnt-node try-accelerator node1": "KVM was mended on node1"},
    operation="OP_NODE_TRY_ACCELERATOR",
)
COMMANDS = (*LISTING.commands("gnt-node", "offline or drained"), INFO, TRY_ACCELERATOR)
