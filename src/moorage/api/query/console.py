# SPDX-License-Identifier: BSD-2-Clause
"""What other programs do for a guest's console, as Ganeti describes it."""

from typing import Any

from moorage.hypervisors import KVM
from moorage.model import Instance, NodeFacts, hvscreen
from moorage.model.hvparams import parameters
from moorage.ops.asking import node_tasks

from .field import Missing, other
from .snapshot import Snapshot

_FIRST_DISPLAY = 5900
_ANY = frozenset({"0.0.0.0", "::"})  # noqa: S104 - nothing listens here


def _console(snapshot: Snapshot, instance: Instance) -> dict[str, Any] | Missing | None:
    """Return Ganeti's description; None for a guest that does not run."""
    node = snapshot.config.home(instance)
    if instance.uuid not in snapshot.guests:
        silent = not isinstance(snapshot.facts.get(node.uuid), NodeFacts)
        unknown = Missing.OFFLINE if node.offline else Missing.NODATA
        return unknown if silent else None
    told: dict[str, Any] = dict.fromkeys(
        ("message", "host", "port", "user", "command", "display")
    )
    told["instance"] = instance.name
    if instance.hypervisor != KVM:
        return told | {"kind": "msg", "message": "a guest that is not real has none"}
    given = parameters(node_tasks.hvparams(snapshot.config, instance))
    if given.serial_console:
        command = ["gnt-instance", "console", instance.name]
        return told | {
            "kind": "ssh",
            "host": node.name,
            "user": "root",
            "command": command,
        }
    address = hvscreen.port_address(given)
    port = instance.network_port
    if address and port:
        host = node.primary_ip if address in _ANY else address
        seen = {"host": host, "port": port, "display": port - _FIRST_DISPLAY}
        return told | {"kind": "vnc", **seen}
    words = f"gnt-instance console --vnc {instance.name}"
    has = (
        f"its screen: {words}" if given.screen else "it has neither console nor screen"
    )
    return told | {"kind": "msg", "message": has}


CONSOLE = other(
    "console",
    "Console",
    "How its console is reached, as Ganeti says it: kind, host, port, command",
    _console,
    live=True,
)
