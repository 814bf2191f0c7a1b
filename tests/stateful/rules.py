# SPDX-License-Identifier: BSD-2-Clause
"""What people and misfortune do to a cluster, in any order.

A rule is a request, or a mishap. A new operation is a rule in one of the modules beside
this one, and a method in :mod:`expected`.
"""

from itertools import product

from hypothesis.stateful import initialize
from life import GROUPS, KINDS
from rules_disks import Disks
from rules_instances import Instances
from rules_mishaps import Mishaps
from rules_networks import Networks
from rules_nodes import Nodes
from rules_storage import Storage


class Anything(Disks, Instances, Networks, Nodes, Storage, Mishaps):
    """Everything that may happen."""

    @initialize()
    def start(self) -> None:
        """Start a cluster with an instance or two, as people have."""
        self.build()
        mirrored = {"pnode": "node3", "snode": "node4", "disk_template": "drbd"}
        for name in ("lan", "dmz"):
            self.make_network(name)
        self.rest()
        for name, group in product(("lan", "dmz"), GROUPS):
            self.connect_network(name, group, "br0")
        disks = [self.new({})]
        self.ask("INSTANCE_CREATE", instance_name="web3", disks=disks, **mirrored)
        self.create("web1", "node1", KINDS[0], which=1)
        self.create("web2", "node2", KINDS[3], which=2)
        self.add(KINDS[2], which=0)
        self.rest()
