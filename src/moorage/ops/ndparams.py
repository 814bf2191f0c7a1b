# SPDX-License-Identifier: BSD-2-Clause
"""Node parameters: what the planner is told of a node, and of all nodes of a group."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct, ValidationError, convert, to_builtins

from moorage.errors import BadInput, NotSupported
from moorage.model import Config, Node
from moorage.model.misfit import misfit

OOB = "/etc/ganeti/oob"
"""Where the programs that switch power lie, on the master's node."""
_OOB = rf"^({OOB}/)?[A-Za-z0-9_][A-Za-z0-9_.-]{{0,63}}$"


class Parameters(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What can be set.

    Attributes
    ----------
    cpu_speed
        Relative to the other nodes.
    exclusive_storage
        Whether a disk has spindles for itself.
    spindle_count
        Of the node.
    oob_program
        Name of the program that switches its power, on the master's node.
    """

    cpu_speed: Annotated[float, Meta(gt=0, le=1e6)] | None = None
    exclusive_storage: bool | None = None
    spindle_count: Annotated[int, Meta(ge=0, le=2**31)] | None = None
    oob_program: Annotated[str, Meta(pattern=_OOB)] | None = None


_UNREAD = {
    "ovs": "cards are connected to bridges that are there",
    "ovs_link": "cards are connected to bridges that are there",
    "ovs_name": "cards are connected to bridges that are there",
    "ssh_port": "nodes are reached over TLS, not by ssh",
}

DEFAULTS: Mapping[str, Any] = {
    "cpu_speed": 1,
    "exclusive_storage": False,
    "oob_program": "",
    "ovs": False,
    "ovs_link": "",
    "ovs_name": "switch1",
    "spindle_count": 1,
    "ssh_port": 22,
}
"""What clients read where nobody has set anything."""
NAMES = tuple(sorted({*Parameters.__struct_fields__, *_UNREAD}))
"""Every node parameter of Ganeti's, those included that nobody reads here."""


def filled(config: Config, node: Node) -> dict[str, Any]:
    """Return a node's parameters: the cluster's, its group's, then its own."""
    group = config.group(node.group)
    return {**config.cluster.ndparams, **group.ndparams, **node.ndparams}


def checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as they are kept; ``default`` and null stay as they are.

    Raises
    ------
    BadInput
        If there is no such parameter, or a value does not fit.
    NotSupported
        If it is one of Ganeti's that nobody would read.
    """
    known = Parameters.__struct_fields__
    for name in given:
        if name in _UNREAD:
            raise NotSupported(f"node parameter {name}: {_UNREAD[name]}")
        if name not in known:
            told = ", ".join(known)
            raise BadInput(f"there is no node parameter '{name}': there is {told}")
    unset = {name: one for name, one in given.items() if one in (None, "default")}
    own = {name: one for name, one in given.items() if name not in unset}
    program = own.get("oob_program")
    if isinstance(program, str) and not re.fullmatch(_OOB, program):
        raise BadInput(
            f"oob_program names a program in {OOB}: not '{program[:80]}'",
            hint="put a script there, on the master's node, that is root's and ends "
            f'in exec {program[:80]} "$@"; and name that one',
        )
    try:
        read = convert(own, Parameters, strict=False)
    except ValidationError as error:
        raise BadInput(f"node parameters: {misfit(error)}") from None
    return {**to_builtins(read), **unset}
