# SPDX-License-Identifier: BSD-2-Clause
"""What can be done with an object: its opcode, the fields of its form, and its command.

What a field means, its unit and its choices are the operation's own words. Who may,
and whether it can be done, the door and the master say; only what an object's own page
shows to be pointless is said before anybody asks.
"""

from typing import Any

from .deed import Deed, Input, Object, Why
from .kinds import KINDS


def _up(one: Object) -> Why | None:
    if one.get("status") == "running":
        return Why("It runs already.")
    return None


def _down(one: Object) -> Why | None:
    if one.get("status") in ("ADMIN_down", "USER_down", "ADMIN_offline"):
        return Why("It does not run.", "startup")
    return None


def _still(one: Object) -> Why | None:
    found = _down(one)
    return found and Why("It does not run: it can fail over.", "failover")


def _detached(one: Object) -> Why | None:
    if not one.get("instance"):
        return Why("No instance has it.", "attach")
    return None


def _attached(one: Object) -> Why | None:
    if one.get("instance"):
        return Why(f"{one['instance']} has it: it must be detached first.", "detach")
    return None


def _offline(one: Object) -> Why | None:
    return Why("It is offline already.", "online") if one.get("offline") else None


def _online(one: Object) -> Why | None:
    return None if one.get("offline") else Why("It is not offline.", "offline")


def _drained(one: Object) -> Why | None:
    return Why("It is drained already.", "undrain") if one.get("drained") else None


def _undrained(one: Object) -> Why | None:
    return None if one.get("drained") else Why("It is not drained.", "drain")


def _empty(one: Object) -> Why | None:
    if one.get("pinst_list") or one.get("sinst_list"):
        return None
    return Why("No instance is on it.")


_TARGET = Input("target_node", "To node", "-n", "node")
_POLICY = Input("ignore_ipolicy", "Despite the policy", "--ignore-ipolicy")
_ROOM = Input("ignore_capacity", "Despite capacity", "--ignore-capacity")
_FREE_DISK = ("==", "status", "detached")


def _instance(word: str, label: str, *inputs: Input, op: str = "", **more: Any) -> Deed:  # noqa: ANN401 - the fields of Deed
    name = op or f"OP_INSTANCE_{word.upper()}"
    command = more.pop("command", f"gnt-instance {word} -f")
    return Deed(word, "instance", label, name, "instance_name", command, inputs, **more)


def _disk(word: str, label: str, *inputs: Input, **more: Any) -> Deed:  # noqa: ANN401
    command = more.pop("command", f"gnt-disk {word}")
    name = f"OP_DISK_{word.upper()}"
    return Deed(word, "disk", label, name, "disk", command, inputs, **more)


def _node(word: str, label: str, *inputs: Input, **more: Any) -> Deed:  # noqa: ANN401
    command = more.pop("command", f"gnt-node {word} -f")
    name = more.pop("op", f"OP_NODE_{word.upper()}")
    return Deed(word, "node", label, name, "node_name", command, inputs, **more)


def _mark(word: str, label: str, field: str, value: str, **more: Any) -> Deed:  # noqa: ANN401
    return _node(
        word,
        label,
        op="OP_NODE_SET_PARAMS",
        command=f"gnt-node modify --{field} {value}",
        fixed={field: value == "yes"},
        **more,
    )


def _tags(kind: str, program: str) -> tuple[Deed, Deed]:
    many = Input("tags", "Tags", many=True)
    fixed = {"kind": KINDS[kind].tagged}
    return (
        Deed(
            "add-tags", kind, "Add tags", "OP_TAGS_SET", "name",
            f"{program}add-tags", (many,), fixed,
        ),
        Deed(
            "remove-tags", kind, "Remove tags", "OP_TAGS_DEL", "name",
            f"{program}remove-tags", (many,), fixed,
        ),
    )  # fmt: skip


_MEMORY = "How much memory it gets."
_DISK = "--disk"
DEEDS: tuple[Deed, ...] = (
    _instance(
        "add",
        "Make an instance",
        Input("instance_name", "Name"),
        Input("pnode", "Node", "-n", "node"),
        Input("os_type", "Operating system", "-o"),
        Input("no_install", "Leave the disks empty", "--no-install"),
        Input(
            "beparams", "Memory", "-B", within="memory", kind="int", unit="MiB",
            words=_MEMORY,
        ),
        Input(
            "beparams", "Processors", "-B", within="vcpus", kind="int",
            words="How many it sees.",
        ),
        Input(
            "disks", "Size", _DISK, within="size", kind="int", unit="MiB",
            words="How large it is.",
        ),
        Input(
            "disks", "Provider", _DISK, within="provider",
            words="The ExtStorage provider that makes it.",
        ),
        Input(
            "disks", "Pool", _DISK, "pool", within="pool",
            words="The storage pool that it is made in.",
        ),
        Input("disk_template", "Template of its disks", "-t"),
        op="OP_INSTANCE_CREATE", command="gnt-instance add", makes=True,
        several=("disks", "disk"),
    ),
    _disk(
        "add",
        "Make a disk",
        Input("name", "Name"),
        Input("size", "Size", "-s"),
        Input("pool", "Pool", "--pool", "pool"),
        Input("disk_template", "Template", "-t"),
        Input("provider", "Provider", "-p"),
        Input("node", "Node", "-n", "node"),
        makes=True,
    ),
    _instance("startup", "Start", command="gnt-instance startup", why_not=_up),
    _instance(
        "shutdown", "Shut down", Input("timeout", "Time", "-m"),
        command="gnt-instance shutdown", why_not=_down,
    ),
    _instance("reboot", "Reboot", Input("reboot_type", "How", "-t"), why_not=_down),
    _instance(
        "migrate",
        "Migrate",
        _TARGET,
        Input("allow_failover", "Or fail over", "--allow-failover"),
        _POLICY,
        _ROOM,
        why_not=_still,
    ),
    _instance(
        "failover",
        "Fail over",
        _TARGET,
        Input("ignore_consistency", "Despite a late copy", "--ignore-consistency"),
        _POLICY,
        _ROOM,
    ),
    Deed(
        "attach-disk", "instance", "Attach a disk", "OP_DISK_ATTACH", "instance_name",
        "gnt-disk attach", (Input("disk", "Disk", "", "disk", _FREE_DISK),), last=True,
    ),
    *_tags("instance", "gnt-instance "),
    _instance(
        "remove",
        "Remove",
        Input("keep_disks", "Keep the disks", "--keep-disks"),
        destroys=True,
    ),
    _disk(
        "attach", "Attach", Input("instance_name", "Instance", "", "instance"),
        why_not=_attached,
    ),
    _disk("detach", "Detach", why_not=_detached),
    _disk(
        "grow",
        "Grow",
        Input("amount", "Size"),
        Input("absolute", "In all, not besides", "--absolute"),
        _ROOM,
    ),
    _disk("snapshot", "Snapshot", Input("new_name", "New name", "--name"), _ROOM),
    _disk("rename", "Rename", Input("new_name", "New name")),
    *_tags("disk", "gnt-disk "),
    _disk(
        "remove", "Remove", command="gnt-disk remove -f", why_not=_attached,
        destroys=True,
    ),
    _node(
        "migrate", "Migrate all", _TARGET, why_not=_empty,
    ),
    _node(
        "evacuate",
        "Evacuate",
        Input("remote_node", "To node", "-n", "node"),
        why_not=_empty,
    ),
    _mark("drain", "Drain", "drained", "yes", why_not=_drained),
    _mark("undrain", "Take instances again", "drained", "no", why_not=_undrained),
    _mark("offline", "Mark offline", "offline", "yes", why_not=_offline),
    _mark("online", "Mark online", "offline", "no", why_not=_online),
    *_tags("node", "gnt-node "),
    *_tags("group", "gnt-group "),
    *_tags("network", "gnt-network "),
    *_tags("pool", "gnt-storage pool "),
)  # fmt: skip
"""In the order of the page."""


CONSOLE = _instance("console", "Console", command="gnt-instance console", why_not=_down)
SCREEN = CONSOLE._replace(
    word="screen", label="Screen", command="gnt-instance console --vnc"
)
LINES = (CONSOLE, SCREEN)
"""Lines to a guest: they have pages of their own, and no form."""


def of(kind: str) -> tuple[Deed, ...]:
    """Return what can be done with objects of a kind."""
    return tuple(one for one in DEEDS if one.kind == kind and not one.makes)


def making(kind: str) -> Deed | None:
    """Return what makes an object of a kind; None for nothing."""
    return next((one for one in DEEDS if one.kind == kind and one.makes), None)


def named(kind: str, word: str) -> Deed | None:
    """Return a deed; None for none."""
    found = (one for one in DEEDS if one.kind == kind and one.word == word)
    return next(found, None)
