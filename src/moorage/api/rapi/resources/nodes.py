# SPDX-License-Identifier: BSD-2-Clause
"""Nodes."""

from typing import Any, Literal

from moorage.api.rapi.looking import BULK, COMMON, LOCK, Listed, Single, get, one
from moorage.api.rapi.making import DRY_RUN, FORCE, Make, make
from moorage.api.rapi.refusals import HttpError
from moorage.api.rapi.roles import Role
from moorage.api.rapi.route import Arg, Asked, Kind, Route

from .tagging import tags

_FIELDS = (
    *("name", "offline", "master_candidate", "drained", "dtotal", "dfree", "sptotal"),
    *("spfree", "mtotal", "mnode", "mfree", "pinst_cnt", "sinst_cnt", "ctotal", "cnos"),
    *("cnodes", "csockets", "pip", "sip", "role", "pinst_list", "sinst_list"),
    *("master_capable", "vm_capable", "ndparams", "group.uuid", "storage", *COMMON),
)
_LETTERS = {
    "M": "master",
    "C": "master-candidate",
    "D": "drained",
    "O": "offline",
    "R": "regular",
}
_FLAGS: dict[str, dict[str, bool]] = {
    "regular": {"master_candidate": False, "offline": False, "drained": False},
    "master-candidate": {"master_candidate": True},
    "drained": {"drained": True},
    "offline": {"offline": True},
}
"""What makes a node what it is to be."""
_NODE = "/2/nodes/{node_name}"
_TYPE = Arg("storage_type", Kind.TEXT, "kind of storage", field="storage_type")
_NAME = Arg("name", Kind.TEXT, "the storage unit", field="name", required=True)


async def _role(asked: Asked) -> str:
    (letter,) = await one(asked, "node", ["role"], asked.path["node_name"])
    return _LETTERS[letter]


def _as_role(opcode: dict[str, Any], asked: Asked) -> list[dict[str, Any]]:
    flags = _FLAGS.get(asked.body) if isinstance(asked.body, str) else None
    if flags is None:
        raise HttpError(400, f"Can't set '{asked.body}' role")
    return [{**opcode, **flags}]


def _migration(opcode: dict[str, Any], asked: Asked) -> list[dict[str, Any]]:
    """Take the mode of old clients, which is behind the question mark."""
    if "live" in asked.args and "mode" in asked.args:
        raise HttpError(400, "Only one of 'live' and 'mode' should be passed")
    if "live" in asked.args:
        opcode["mode"] = "live" if asked.flag("live") else "non-live"
    elif "mode" in asked.args:
        opcode["mode"] = asked.args["mode"]
    return [opcode]


def _about_one(opcode: dict[str, Any], _asked: Asked) -> list[dict[str, Any]]:
    name = opcode.pop("node_name")
    return [{**opcode, "nodes": [name]}]


def _allocatable(opcode: dict[str, Any], asked: Asked) -> list[dict[str, Any]]:
    given = "allocatable" in asked.args
    changes = {"allocatable": asked.flag("allocatable")} if given else {}
    return [{**opcode, "changes": changes}]


_PROMOTE = Arg(
    "auto-promote", Kind.FLAG, "promote others if need be", field="auto_promote"
)
_SET_ROLE = Make(
    "OP_NODE_SET_PARAMS",
    (FORCE, _PROMOTE, DRY_RUN),
    body=False,
    shape=_as_role,
    takes=Literal["drained", "master-candidate", "offline", "regular"],
)
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/2/nodes",
        "List the nodes",
        Listed("node", _FIELDS, "/2/nodes"),
        Role.KNOWN,
        (BULK, LOCK),
    ),
    Route(
        "GET",
        _NODE,
        "Tell about a node",
        Single("node", _FIELDS, {"secondary_ip": "sip"}),
        Role.KNOWN,
        (LOCK,),
    ),
    get(f"{_NODE}/role", "Tell the role of a node", _role, LOCK, answer=str),
    Route(
        "PUT",
        f"{_NODE}/role",
        "Give a node a role; the body is its name",
        _SET_ROLE,
        _SET_ROLE.role,
        _SET_ROLE.args,
    ),
    make("POST", f"{_NODE}/powercycle", "OP_NODE_POWERCYCLE", FORCE),
    make("POST", f"{_NODE}/evacuate", "OP_NODE_EVACUATE"),
    make(
        "POST",
        f"{_NODE}/migrate",
        "OP_NODE_MIGRATE",
        Arg("live", Kind.FLAG, "old clients: whether guests run meanwhile"),
        Arg("mode", Kind.TEXT, "old clients: live or non-live"),
        shape=_migration,
    ),
    make("POST", f"{_NODE}/modify", "OP_NODE_SET_PARAMS", FORCE),
    make(
        "GET",
        f"{_NODE}/storage",
        "OP_NODE_QUERY_STORAGE",
        _TYPE,
        Arg(
            "output_fields",
            Kind.WORDS,
            "columns of the job's result",
            field="output_fields",
            required=True,
        ),
        body=False,
        shape=_about_one,
    ),
    make(
        "PUT",
        f"{_NODE}/storage/modify",
        "OP_NODE_MODIFY_STORAGE",
        _TYPE,
        _NAME,
        Arg("allocatable", Kind.FLAG, "whether new volumes may be made in it"),
        body=False,
        shape=_allocatable,
    ),
    make(
        "PUT",
        f"{_NODE}/storage/repair",
        "OP_REPAIR_NODE_STORAGE",
        _TYPE,
        _NAME,
        body=False,
    ),
    *tags(_NODE, "node"),
)
