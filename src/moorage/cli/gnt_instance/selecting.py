# SPDX-License-Identifier: BSD-2-Clause
"""Which instances a command is about: by name, by node, by tags, or all of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.cli.command import Call, Operand, Option
from moorage.errors import BadInput, NotFound

_SHOWN = 5
"""Names that a question lists."""

OPERANDS = (Operand("INSTANCE|NODE|TAG", 0, None),)
INSTANCE = (Operand("INSTANCE", field="instance_name"),)
SELECTORS = tuple(
    Option((f"--{word}",), told)
    for word, told in {
        "all": "every instance of the cluster",
        "instance": "those that are named, as without a selector",
        "node": "those with a named node as primary or secondary one",
        "primary": "those with a named node as their primary one",
        "secondary": "those with a named node as their secondary one",
        "tags": "those with one of the named tags",
        "node-tags": "those on a node with one of the named tags",
        "pri-node-tags": "those whose primary node has one of the named tags",
        "sec-node-tags": "those whose secondary node has one of the tags",
        "force-multiple": "do not ask although several are meant",
    }.items()
)
"""Options of each command on instances that are selected."""


_BY_NODE = {
    "node": ("pnode", "snodes"),
    "primary": ("pnode",),
    "secondary": ("snodes",),
    "node_tags": ("pnode", "snodes"),
    "pri_node_tags": ("pnode",),
    "sec_node_tags": ("snodes",),
}
"""Selectors that are about nodes, and the fields of an instance that have these."""
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
    more = () if mode == "all" else ("pnode", "snodes", "tags")
    rows = call.rows("instance", ("name", *more))
    if mode == "tags":
        rows = [
            row for row in rows if not set(row["tags"] or ()).isdisjoint(call.words)
        ]
    elif mode != "all":
        nodes = _tagged(call) if "tags" in mode else _named(call)
        rows = [row for row in rows if nodes & _nodes(row, _BY_NODE[mode])]
    return [row["name"] for row in rows]


def _nodes(row: Mapping[str, Any], fields: Sequence[str]) -> set[str]:
    nodes = {"pnode": (row["pnode"],), "snodes": row["snodes"] or ()}
    return {node for field in fields for node in nodes[field]}


def _tagged(call: Call) -> set[str]:
    rows = call.rows("node", ("name", "tags"))
    return {one["name"] for one in rows if set(one["tags"] or ()) & {*call.words}}


def _named(call: Call) -> set[str]:
    """Return the nodes that are named; the master knows what a word is short for."""
    return {node["name"] for node in call.look_up("node", ("name",))}
