# SPDX-License-Identifier: BSD-2-Clause
"""Guests' screens: which port VNC has, and that no stranger sees one."""

from collections.abc import Mapping
from typing import Any
from zlib import crc32

from msgspec.structs import replace

from moorage.errors import Failed
from moorage.hypervisors import KVM
from moorage.model import Config, Instance, hvscreen
from moorage.model.hvparams import Parameters, parameters

PORTS = range(15000, 19000)
"""Where screens are: beyond the ports of mirrored disks."""


def check(config: Config, hypervisor: str, given: Mapping[str, Any]) -> None:
    """Raise `BadInput` if strangers would reach the screen of an instance."""
    if hypervisor == KVM:
        hvscreen.check_open(_whole(config, given))


def with_port(config: Config, instance: Instance) -> Instance:
    """Return the instance, with a port if its screen needs one and it has none.

    The search begins at a place that is the uuid's: so two that are made at once, and
    do not know of each other, get two. Raise `Failed` if all are taken.
    """
    wanted = instance.hypervisor == KVM and hvscreen.port_address(
        _whole(config, instance.hvparams)
    )
    if not wanted or instance.network_port:
        return instance
    taken = {one.network_port for one in config.all(Instance)}
    first = crc32(instance.uuid.encode()) % len(PORTS)
    for port in (*PORTS[first:], *PORTS[:first]):
        if port not in taken:
            return replace(instance, network_port=port)
    raise Failed(f"all ports from {PORTS[0]} to {PORTS[-1]} are screens of instances")


def _whole(config: Config, given: Mapping[str, Any]) -> Parameters:
    cluster = config.cluster.hvparams.get(KVM, {})
    own = {name: one for name, one in given.items() if one != "default"}
    return parameters(cluster | own)
