# SPDX-License-Identifier: BSD-2-Clause
"""What can be done with an object: its opcode, the fields of its form, and its command.

What a field means, its unit and its choices are the operation's own words. Who may,
and whether it can be done, the door and the master say; only what an object's own page
shows to be pointless is said before anybody asks.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from moorage.units import parse_size

from .kinds import KINDS
from .values import ROOT

Opcode = dict[str, Any]
Object = Mapping[str, Any]
"""The fields of an object, by name."""


class Why(NamedTuple):
    """Why something cannot be done, and the deed that would help; empty for none."""

    sentence: str
    deed: str = ""


class Input(NamedTuple):
    """A field of a form.

    Attributes
    ----------
    name
        The opcode's field.
    label
        What stands before it.
    option
        The command's; empty for an operand.
    pick
        The kind of objects that it names one of.
    fits
        A filter of those that can be named; None for all.
    many
        Whether it takes several words.
    within
        Where the field holds several values by name, the one that is meant.
    kind, unit, words
        Of that one: its type, unit and meaning, as of a field.
    """

    name: str
    label: str
    option: str = ""
    pick: str = ""
    fits: Sequence[Any] | None = None
    many: bool = False
    within: str = ""
    kind: str = "str"
    unit: str = ""
    words: str = ""

    @property
    def called(self) -> str:
        """Its name in the form."""
        return f"{self.name}.{self.within}" if self.within else self.name


class Deed(NamedTuple):
    """Something that can be done.

    Attributes
    ----------
    word
        Its name in addresses.
    kind
        Of the objects that it is done to.
    label
        What stands on its button.
    op, key
        The opcode, and its field that names the object.
    command
        Does the same, with the object, then operands, then options behind it.
    inputs
        The fields of its form.
    fixed
        Fields that are always so.
    why_not
        Says why it is pointless, of an object's fields; None for no reason.
    destroys
        Whether data, or an object, is gone afterwards.
    last
        Whether the command names the object behind its operands.
    makes
        Whether it makes an object, and is done to none.
    """

    word: str
    kind: str
    label: str
    op: str
    key: str
    command: str
    inputs: tuple[Input, ...] = ()
    fixed: Mapping[str, Any] = {}
    why_not: Callable[[Object], Why | None] = lambda _: None
    destroys: bool = False
    last: bool = False
    makes: bool = False

    def href(self, *on: object) -> str:
        """Return where it is done to some objects.

        >>> named("instance", "migrate").href("web1")
        '/ui/do/instance/migrate?on=web1'
        """
        query = urlencode([("on", str(one)) for one in on])
        place = f"{ROOT}/do/{self.kind}/{self.word}"
        return f"{place}?{query}" if query else place

    def opcode(self, on: str, given: Mapping[str, Any]) -> Opcode:
        """Return the request, of an object and what was filled in."""
        named = {} if self.makes else {self.key: on}
        return {"OP_ID": self.op, **self.fixed, **named, **given}

    def typed(self, on: str, words: Mapping[str, Sequence[str]]) -> str:
        """Return the command that does the same.

        Parameters
        ----------
        words
            What was filled in, by the names of fields; a switch has ``on``.
        """
        options, operands = list[str](), list[str]()
        parts: dict[str, list[str]] = {}
        for one in self.inputs:
            filled = [word for word in words.get(one.called, ()) if word]
            if not filled:
                continue
            if one.within:
                parts.setdefault(one.option, []).append(f"{one.within}={filled[0]}")
            elif not one.option:
                operands += filled
            elif filled == ["on"]:
                options.append(one.option)
            else:
                options += [one.option, *filled]
        for option, values in parts.items():
            name, _, before = option.partition(" ")
            options += [name, before + ",".join(values)]
        named = [*operands, on] if self.last else [on, *operands]
        words_ = [*options, *(operands if self.makes else named)]
        return f"{self.command} {shlex.join(words_)}".rstrip()


def value_of(kind: str, unit: str, words: Sequence[str]) -> Any:  # noqa: ANN401
    """Return what a field is filled in with, of its words; the master judges it.

    Parameters
    ----------
    kind, unit
        The field's type, and its unit.

    Raises
    ------
    BadInput
        If a size is none.

    >>> value_of("int", "MiB", ["1G"]), value_of("tuple[str]", "", ["a", "b"])
    (1024, ['a', 'b'])
    """
    if kind.startswith(("tuple", "list")):
        return list(words)
    (word,) = words
    if unit == "MiB":
        return parse_size(word)
    if "bool" in kind:
        return word in ("on", "yes", "true")
    for read in (int, float):
        if read.__name__ in kind:
            try:
                return read(word)
            except ValueError:
                return word
    return word


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
_DISK = "--disk 0:"
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
            "disks", "Size of its disk", _DISK, within="size", kind="int",
            unit="MiB", words="Of the first disk; others are attached later.",
        ),
        Input(
            "disks", "Provider of its disk", _DISK, within="provider",
            words="The ExtStorage provider that makes it.",
        ),
        Input(
            "disks", "Pool of its disk", _DISK, "pool", within="pool",
            words="The storage pool that it is made in.",
        ),
        Input("disk_template", "Template of its disk", "-t"),
        op="OP_INSTANCE_CREATE", command="gnt-instance add", makes=True,
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
