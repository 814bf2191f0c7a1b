# SPDX-License-Identifier: BSD-2-Clause
"""Parameters as clients read them: all of them, those by default that nobody set.

Ganeti's programs end at the first one that is missing, or that is a text where they
look for a number.
"""

from collections.abc import Mapping
from typing import Any

from moorage import backend
from moorage.model import Cluster, Config, Instance, hvwhole
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


def of_instance(config: Config, instance: Instance) -> dict[str, Any]:
    """Return all hypervisor parameters of an instance."""
    given = node_tasks.hvparams(config, instance)
    return hvwhole.whole(instance.hypervisor, given)


def of_cluster(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """Return all parameters of each hypervisor that is enabled."""
    given = cluster.hvparams
    return {
        **given,
        **{
            name: hvwhole.whole(name, given.get(name, {}))
            for name in cluster.enabled_hypervisors
        },
    }


def back_end(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """Return all back-end parameters of the cluster."""
    given = cluster.beparams.get("default", {})
    return {**cluster.beparams, "default": {**backend.DEFAULTS, **given}}
