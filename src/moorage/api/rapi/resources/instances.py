# SPDX-License-Identifier: BSD-2-Clause
"""Instances."""

from typing import Any

from moorage.api.rapi.looking import COMMON, get, listed, one
from moorage.api.rapi.making import FORCE, make, renamed
from moorage.api.rapi.refusals import HttpError
from moorage.api.rapi.roles import Role
from moorage.api.rapi.route import Arg, Asked, Kind, Route
from moorage.units import is_whole

from .tagging import tags

_FIELDS = (
    *("name", "admin_state", "os", "pnode", "snodes", "disk_template"),
    *("nic.ips", "nic.macs", "nic.modes", "nic.uuids", "nic.names", "nic.links"),
    *("nic.networks", "nic.networks.names", "nic.bridges", "network_port"),
    *("disk.sizes", "disk.spindles", "disk_usage", "disk.uuids", "disk.names"),
    *("beparams", "hvparams", "oper_state", "oper_ram", "oper_vcpus", "status"),
    *("custom_hvparams", "custom_beparams", "custom_nicparams", "custom_osparams"),
    *COMMON,
)
_ONE = "/2/instances/{instance_name}"
_NAMES = {"name": "instance_name", "os": "os_type"}
_NO_REMEMBER = Arg(
    "no_remember",
    Kind.FLAG,
    "the state that it should be in stays as it is",
    field="no_remember",
    aliases=("no-remember",),
)
Opcode = dict[str, Any]


def _new(opcode: Opcode, _asked: Asked) -> list[Opcode]:
    version = opcode.pop("__version__", 0)
    if version != 1:
        told = "no longer supported" if version == 0 else "not known"
        raise HttpError(
            400, f"Instance creation request version {version} is {told}: it is 1"
        )
    return [_with_devices(opcode)]


def _with_devices(opcode: Opcode) -> Opcode:
    """Take devices with blanks between them, as old clients send them."""
    given = opcode.get("hvparams")
    devices = given.get("usb_devices") if isinstance(given, dict) else None
    if isinstance(given, dict) and isinstance(devices, str):
        opcode["hvparams"] = {**given, "usb_devices": ",".join(devices.split())}
    return opcode


def _several(opcode: Opcode, _asked: Asked) -> list[Opcode]:
    """Take for each instance what would make it alone."""
    wanted = opcode.get("instances")
    if not isinstance(wanted, list):
        raise HttpError(400, "The 'instances' parameter should be a list")
    return [{**opcode, "instances": [_part(one) for one in wanted]}]


def _part(wanted: object) -> Opcode:
    if not isinstance(wanted, dict):
        raise HttpError(400, "Invalid body parameters: an instance is an object")
    found = renamed({k: v for k, v in wanted.items() if k != "__version__"}, _NAMES)
    return _with_devices(found)


def _about_one(opcode: Opcode, asked: Asked) -> list[Opcode]:
    name = opcode.pop("instance_name")
    return [{**opcode, "instances": [name], "static": asked.flag("static")}]


def _at_index(opcode: Opcode, _asked: Asked) -> list[Opcode]:
    if not is_whole(opcode["disk"]):
        raise HttpError(404, "a disk goes by its index here; others: /2/disks")
    return [{**opcode, "disk": int(opcode["disk"])}]


def _reboot(opcode: Opcode, _asked: Asked) -> list[Opcode]:
    return [{"reboot_type": "hard", **opcode}]


def _reinstall(opcode: Opcode, asked: Asked) -> list[Opcode]:
    """Stop the guest, install, and start it again, by one job."""
    old = {"os", "nostartup"} & asked.args.keys()
    if old and asked.body:
        raise HttpError(400, "Can't combine query and body parameters")
    start = opcode.pop("start", not asked.flag("nostartup"))
    if not isinstance(start, bool):
        raise HttpError(400, "Invalid body parameters: start is true or false")
    if opcode.get("osparams", ...) is None:
        del opcode["osparams"]
    about = {"instance_name": opcode["instance_name"]}
    dry = {"dry_run": True} if opcode.get("dry_run") else {}
    ops: list[Opcode] = [
        {"OP_ID": "OP_INSTANCE_SHUTDOWN", **about, **dry},
        opcode,
        {"OP_ID": "OP_INSTANCE_STARTUP", **about, **dry},
    ]
    return ops if start else ops[:2]


def _replace(opcode: Opcode, _asked: Asked) -> list[Opcode]:
    """Take the disks of old clients, which are numbers in a text."""
    disks = opcode.get("disks")
    if isinstance(disks, str):
        try:
            opcode["disks"] = [int(part) for part in disks.split(",") if part.strip()]
        except ValueError:
            raise HttpError(400, f"Invalid disk index passed: {disks!r}") from None
    return [opcode]


async def _console(asked: Asked) -> dict[str, Any]:
    name = asked.path["instance_name"]
    (told,) = await one(asked, "instance", ["console"], name)
    if told is None:
        raise HttpError(503, f"instance {name} has no console: it does not run")
    found: dict[str, Any] = told
    return found


_REPLACE_ARGS = (
    Arg("disks", Kind.TEXT, "old clients: indices with commas between", field="disks"),
    Arg("mode", Kind.TEXT, "old clients: which side", field="mode"),
    Arg("remote_node", Kind.TEXT, "old clients: where to", field="remote_node"),
    Arg("iallocator", Kind.TEXT, "old clients: who chooses", field="iallocator"),
    Arg("early_release", Kind.FLAG, "old clients: release", field="early_release"),
)
ROUTES: tuple[Route, ...] = (
    *listed("/2/instances", "instance", _FIELDS),
    make(
        "POST",
        "/2/instances",
        "OP_INSTANCE_CREATE",
        renames=_NAMES,
        shape=_new,
        extra={"__version__": "1: of this request, required"},
    ),
    make("POST", "/2/instances-multi-alloc", "OP_INSTANCE_MULTI_ALLOC", shape=_several),
    make("DELETE", _ONE, "OP_INSTANCE_REMOVE", fixed={"ignore_failures": False}),
    make(
        "GET",
        f"{_ONE}/info",
        "OP_INSTANCE_QUERY_DATA",
        Arg("static", Kind.FLAG, "without what its node would have to be asked"),
        body=False,
        shape=_about_one,
    ),
    make(
        "PUT",
        f"{_ONE}/modify",
        "OP_INSTANCE_SET_PARAMS",
        renames={"custom_beparams": "beparams", "custom_hvparams": "hvparams"},
    ),
    make(
        "POST", f"{_ONE}/disk/{{disk}}/grow", "OP_INSTANCE_GROW_DISK", shape=_at_index
    ),
    make(
        "PUT",
        f"{_ONE}/startup",
        "OP_INSTANCE_STARTUP",
        FORCE,
        _NO_REMEMBER,
        body=False,
    ),
    make(
        "PUT",
        f"{_ONE}/shutdown",
        "OP_INSTANCE_SHUTDOWN",
        _NO_REMEMBER,
    ),
    make(
        "POST",
        f"{_ONE}/reboot",
        "OP_INSTANCE_REBOOT",
        Arg("type", Kind.TEXT, "soft, hard (else) or full", field="reboot_type"),
        Arg("ignore_secondaries", Kind.FLAG, "no effect", field="ignore_secondaries"),
        shape=_reboot,
    ),
    make(
        "POST",
        f"{_ONE}/reinstall",
        "OP_INSTANCE_REINSTALL",
        Arg("os", Kind.TEXT, "old clients: the system", field="os_type"),
        Arg("nostartup", Kind.FLAG, "old clients: leave it stopped"),
        renames={"os": "os_type"},
        shape=_reinstall,
        extra={"start": "whether to start it afterwards (true)"},
    ),
    make("PUT", f"{_ONE}/rename", "OP_INSTANCE_RENAME"),
    make("PUT", f"{_ONE}/migrate", "OP_INSTANCE_MIGRATE"),
    make("PUT", f"{_ONE}/failover", "OP_INSTANCE_FAILOVER"),
    make(
        "POST",
        f"{_ONE}/replace-disks",
        "OP_INSTANCE_REPLACE_DISKS",
        *_REPLACE_ARGS,
        shape=_replace,
    ),
    make("POST", f"{_ONE}/recreate-disks", "OP_INSTANCE_RECREATE_DISKS"),
    make(
        "PUT",
        f"{_ONE}/activate-disks",
        "OP_INSTANCE_ACTIVATE_DISKS",
        Arg("ignore_size", Kind.FLAG, "whatever their sizes", field="ignore_size"),
        body=False,
    ),
    make(
        "PUT",
        f"{_ONE}/deactivate-disks",
        "OP_INSTANCE_DEACTIVATE_DISKS",
        FORCE,
        body=False,
    ),
    make(
        "PUT",
        f"{_ONE}/prepare-export",
        "OP_BACKUP_PREPARE",
        Arg("mode", Kind.TEXT, "local", field="mode", required=True),
        body=False,
    ),
    make(
        "PUT",
        f"{_ONE}/export",
        "OP_BACKUP_EXPORT",
        renames={"destination": "target_node"},
    ),
    make("DELETE", f"{_ONE}/export", "OP_BACKUP_REMOVE"),
    get(
        f"{_ONE}/console",
        "Tell how the console of a guest is reached",
        _console,
        answer=dict[str, Any],
        role=Role.READ,
    ),
    *tags(_ONE, "instance"),
)
