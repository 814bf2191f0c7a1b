# SPDX-License-Identifier: BSD-2-Clause
"""Parameters as clients read them: all of them, those by default that nobody set.

Ganeti's programs end at the first one that is missing, or that is a text where they
look for a number.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import to_builtins

from moorage import backend
from moorage.errors import BadInput
from moorage.hypervisors import KVM
from moorage.model import Cluster, Config, Instance, hvparams
from moorage.model.hvignored import IGNORED
from moorage.ops.asking import node_tasks
from moorage.ops.ndparams import DEFAULTS

from .field import Column

NDP = {
    "cpu_speed": Column("ndp/cpu_speed", "float"),
    "exclusive_storage": Column("ExclusiveStorage", "bool"),
    "oob_program": Column("OutOfBandProgram", "other"),
    "ovs": Column("OpenvSwitch", "bool"),
    "ovs_link": Column("OpenvSwitchLink", "other"),
    "ovs_name": Column("OpenvSwitchName", "other"),
    "spindle_count": Column("SpindleCount", "number"),
    "ssh_port": Column("ndp/ssh_port", "number"),
}
"""Columns of the node parameters."""


def node(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all node parameters."""
    return {**DEFAULTS, **given}


def hypervisor(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all parameters of a hypervisor, with the types that they are of."""
    own = {key: value for key, value in given.items() if value is not None}
    found = _all(name) | own
    if name != KVM or not own:
        return found
    try:
        typed = to_builtins(hvparams.parameters(own))
    except BadInput:  # an earlier version took it: shown as it is
        typed = {}
    typed |= {key: one.typed(own[key]) for key, one in IGNORED.items() if key in own}
    return found | {key: typed[key] for key in own.keys() & typed.keys()}


@cache
def _all(name: str) -> dict[str, Any]:
    """Return the parameters of a hypervisor that nobody has set anything of."""
    usual = {key: one.default for key, one in IGNORED.items()} if name == KVM else {}
    return {**usual, **hvparams.filled(name, {})}


def of_instance(config: Config, instance: Instance) -> dict[str, Any]:
    """Return all hypervisor parameters of an instance."""
    given = node_tasks.hvparams(config, instance)
    return hypervisor(instance.hypervisor, given)


def of_cluster(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """Return all parameters of each hypervisor that is enabled."""
    given = cluster.hvparams
    return {
        **given,
        **{
            name: hypervisor(name, given.get(name, {}))
            for name in cluster.enabled_hypervisors
        },
    }


def back_end(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """Return all back-end parameters of the cluster."""
    given = cluster.beparams.get("default", {})
    return {**cluster.beparams, "default": {**backend.DEFAULTS, **given}}
