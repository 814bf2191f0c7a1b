# SPDX-License-Identifier: BSD-2-Clause
"""Which instances a command is about: by name, by node, by tags, or all of them."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from moorage.cli.command import Call, Operand, Option
from moorage.cli.details import look_up
from moorage.errors import BadInput, NotFound

_SHOWN = 5
"""Names that a question lists."""

OPERANDS = (Operand("INSTANCE|NODE|TAG", 0, None),)
SELECTORS = (
    Option(("--all",), "every instance of the cluster"),
    Option(("--instance",), "those that are named, as without a selector"),
    Option(("--node",), "those with a named node as primary or secondary one"),
    Option(("--primary",), "those with a named node as their primary one"),
    Option(("--secondary",), "those with a named node as their secondary one"),
    Option(("--tags",), "those with one of the named tags"),
    Option(("--node-tags",), "those on a node with one of the named tags"),
    Option(("--pri-node-tags",), "those whose primary node has one of the named tags"),
    Option(("--sec-node-tags",), "those whose secondary node has one of the tags"),
    Option(("--force-multiple",), "do not ask although several are meant"),
)
"""Options of each command on instances that are selected."""


class Row(NamedTuple):
    """An instance, as far as a selector looks at it."""

    name: str
    pnode: str
    snodes: tuple[str, ...]
    tags: frozenset[str]

    @property
    def nodes(self) -> tuple[str, ...]:
        """Its primary and its secondary nodes."""
        return (self.pnode, *self.snodes)


_BY_NODE: Mapping[str, Callable[[Row], tuple[str, ...]]] = {
    "node": lambda row: row.nodes,
    "primary": lambda row: (row.pnode,),
    "secondary": lambda row: row.snodes,
    "node_tags": lambda row: row.nodes,
    "pri_node_tags": lambda row: (row.pnode,),
    "sec_node_tags": lambda row: row.snodes,
}
_MODES = ("all", "instance", "tags", *_BY_NODE)


def chosen(call: Call, what: str) -> list[str]:
    """Return the names of the instances that are meant, in the order they were named.

    Several that were not named one by one are listed, and asked about.

    Parameters
    ----------
    what
        What happens to them, as a question begins: ``Shut down``.

    Raises
    ------
    BadInput
        If selectors contradict each other, or something is not named.
    NotFound
        If nothing is meant.
    """
    modes = [mode for mode in _MODES if call.option(mode)]
    if len(modes) > 1:
        told = " and ".join(f"--{mode.replace('_', '-')}" for mode in modes)
        raise BadInput(f"{told} do not go together", hint="choose one of them")
    mode = modes[0] if modes else "instance"
    if mode == "all" and call.words:
        raise BadInput(
            "--all and names do not go together", hint="leave one of them out"
        )
    if mode != "all" and not call.words:
        thing = (
            "instance" if mode == "instance" else "tag" if "tags" in mode else "node"
        )
        raise BadInput(f"no {thing} is named", hint="name some, or say --all")
    if mode == "instance":
        return list(dict.fromkeys(call.words))
    found = _selected(call, mode)
    if not found and mode != "all":
        raise NotFound("no instance is selected", hint="gnt-instance list")
    _ask(call, what, found, everything=mode == "all")
    return found


def are_named(call: Call) -> bool:
    """Return whether instances are named one by one, and none was asked about yet."""
    return not any(call.option(mode) for mode in _MODES if mode != "instance")


def _ask(call: Call, what: str, found: list[str], *, everything: bool) -> None:
    if not found or call.option("force_multiple"):
        return
    told = ", ".join(found[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
    count = f"{len(found)}: {told}"
    whom = "every instance of the cluster" if everything else "the selected instances"
    call.ask(f"{what} {whom} ({count})?")


def _selected(call: Call, mode: str) -> list[str]:
    if mode == "all":
        _, named = call.client.query("instance", ("name",))
        return [str(row[0][1]) for row in named]
    fields = ("name", "pnode", "snodes", "tags")
    _, answer = call.client.query("instance", fields)
    rows = [_row([value for _, value in one]) for one in answer]
    words = set(call.words)
    if mode == "tags":
        return [row.name for row in rows if row.tags & words]
    nodes = _tagged(call, words) if "tags" in mode else _named(call)
    of = _BY_NODE[mode]
    return [row.name for row in rows if nodes.intersection(of(row))]


def _row(values: list[Any]) -> Row:
    name, pnode, snodes, tags = values
    return Row(str(name), str(pnode), tuple(snodes or ()), frozenset(tags or ()))


def _tagged(call: Call, tags: set[str]) -> set[str]:
    _, rows = call.client.query("node", ("name", "tags"))
    return {str(name) for (_, name), (_, own) in rows if tags.intersection(own or ())}


def _named(call: Call) -> set[str]:
    """Return the nodes that are named; the master knows what a word is short for."""
    return {node["name"] for node in look_up(call, "node", ("name",))}
