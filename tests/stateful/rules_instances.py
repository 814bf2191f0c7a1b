# SPDX-License-Identifier: BSD-2-Clause
"""What people ask for of instances, in any order."""

from typing import Any

from asking import Asking
from hypothesis import strategies as st
from life import NODES, instances, kinds, nodes, step, which
from things import Instance as Wanted

MODES = ("replace_on_primary", "replace_on_secondary", "replace_new_secondary")
CARDS = [{"network": "lan", "ip": "pool"}, {"network": "dmz", "ip": "pool"}]


class Instances(Asking):
    """Requests that name an instance."""

    @step(name=instances, node=nodes, kind=kinds, which=which)
    def create(self, name: str, node: str, kind: dict[str, Any], which: int) -> None:
        if not self.roomy:
            return
        disks = [self.new(kind) for _ in range(1 + which % 2)]
        how = {"start": which % 3 > 0, "disk_template": kind["disk_template"]}
        how["nics"] = CARDS[: which % 3]
        on = {"pnode": node} if which % 4 else {}
        if on and kind["disk_template"] == "drbd":
            on["snode"] = NODES[which % len(NODES)]
        self.ask("INSTANCE_CREATE", instance_name=name, disks=disks, **on, **how)

    @step(instance=which)
    def startup(self, instance: int) -> None:
        name = self.instance(instance, self.rests)
        self.ask("INSTANCE_STARTUP", instance_name=name)

    @step(instance=which)
    def shutdown(self, instance: int) -> None:
        self.ask("INSTANCE_SHUTDOWN", instance_name=self.instance(instance))

    @step(instance=which, how=st.sampled_from(("hard", "full")))
    def reboot(self, instance: int, how: str) -> None:
        name = self.instance(instance)
        self.ask("INSTANCE_REBOOT", instance_name=name, reboot_type=how)

    @step(instance=which, node=nodes)
    def migrate(self, instance: int, node: str) -> None:
        name = self.instance(instance, self.runs)
        to = self.partner(name, node)
        self.ask("INSTANCE_MIGRATE", instance_name=name, target_node=to)

    @step(instance=which, node=nodes)
    def failover(self, instance: int, node: str) -> None:
        name = self.instance(instance)
        to = self.partner(name, node)
        self.ask("INSTANCE_FAILOVER", instance_name=name, target_node=to)

    @step(instance=which, mode=st.sampled_from(MODES), node=nodes)
    def replace_disks(self, instance: int, mode: str, node: str) -> None:
        name = self.instance(instance, self.is_mirrored)
        to = {"remote_node": node} if mode == MODES[2] else {}
        self.ask("INSTANCE_REPLACE_DISKS", instance_name=name, mode=mode, **to)

    def is_mirrored(self, instance: Wanted) -> bool:
        """Whether an instance has a disk with two copies."""
        return any(self.expected.disks[it].template == "drbd" for it in instance.disks)

    @step(instance=which, keep=st.booleans())
    def remove(self, instance: int, keep: bool) -> None:
        if self.crowded:
            name = self.instance(instance)
            self.ask("INSTANCE_REMOVE", instance_name=name, keep_disks=keep)

    @step(instance=which, node=nodes)
    def start_by_hand(self, instance: int, node: str) -> None:
        """Let a guest run where nobody knows of it: it is not started a second time."""
        self.rest()
        down = [n for n, it in self.expected.instances.items() if not it.up]
        if not down or self.dark or self.expected.offline:
            return
        found = self.cluster.config.instance(down[instance % len(down)])
        if node == found.primary_node:
            return
        guests, key = self.cluster.nodes.san.guests, f"{node} {found.uuid}"
        state = {"uuid": found.uuid, "name": found.name, "state": "running"}
        rest = {"memory": 128, "vcpus": 1, "disks": []}
        guests[key] = {"state": state | rest, "drives": {}}
        start = self.cluster.refused("OP_INSTANCE_STARTUP", instance_name=found.name)
        assert f"runs on node {node}" in self.loop.run(start).message
        self.learnt = max(self.cluster.engine.jobs)
        del guests[key]
