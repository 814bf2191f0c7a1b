# SPDX-License-Identifier: BSD-2-Clause
"""What people ask for of nodes and node groups, in any order."""

from asking import Asking
from hypothesis import strategies as st
from hypothesis.stateful import precondition
from life import GROUPS, GUEST_NODE, instances, nodes, step, which

from moorage.model import Instance
from moorage.model.token import Token, to_text

MODES = ("all", "primary-only", "secondary-only")
groups = st.sampled_from(GROUPS)


class Nodes(Asking):
    """Requests that name a node, and instances that leave theirs."""

    @step(node=nodes, drained=st.sampled_from((True, False, False)))
    def drain(self, node: str, drained: bool) -> None:
        self.ask("NODE_SET_PARAMS", node_name=node, drained=drained)

    @step(node=nodes, candidate=st.booleans())
    def nominate(self, node: str, candidate: bool) -> None:
        asked = {"node_name": node, "master_candidate": candidate}
        self.ask("NODE_SET_PARAMS", **asked, auto_promote=True)

    @step(node=nodes, number=st.integers(1, 3))
    def readdress(self, node: str, number: int) -> None:
        address = f"127.0.{number}.{node[-1]}"
        self.ask("NODE_SET_PARAMS", node_name=node, secondary_ip=address)

    @precondition(lambda self: GUEST_NODE not in self.expected.nodes)
    @step(group=groups)
    def add_node(self, group: str) -> None:
        token = to_text(Token("127.0.0.9", 1, "f" * 64, "s"))
        self.ask("NODE_ADD", node_name=GUEST_NODE, group=group, token=token)

    @precondition(lambda self: GUEST_NODE in self.expected.nodes)
    @step()
    def remove_node(self) -> None:
        self.ask("NODE_REMOVE", node_name=GUEST_NODE)

    @step(node=nodes, mode=st.sampled_from(MODES))
    def evacuate(self, node: str, mode: str) -> None:
        self.ask("NODE_EVACUATE", node_name=node, mode=mode)

    @step(node=nodes, how=st.sampled_from(("MIGRATE", "FAILOVER")))
    def send_all(self, node: str, how: str) -> None:
        self.ask(f"NODE_{how}", node_name=node)

    @step(group=groups)
    def evacuate_group(self, group: str) -> None:
        self.ask("GROUP_EVACUATE", group_name=group)

    @step(group=groups)
    def regroup(self, group: str) -> None:
        self.ask("GROUP_ASSIGN_NODES", group_name=group, nodes=[GUEST_NODE])

    @step(instance=which)
    def change_group(self, instance: int) -> None:
        self.ask("INSTANCE_CHANGE_GROUP", instance_name=self.instance(instance))

    @step(instance=which, node=nodes)
    def move(self, instance: int, node: str) -> None:
        name = self.instance(instance)
        self.ask("INSTANCE_MOVE", instance_name=name, target_node=node)

    @step(instance=which, to=instances)
    def rename_instance(self, instance: int, to: str) -> None:
        name = self.instance(instance, self.rests)
        self.ask("INSTANCE_RENAME", instance_name=name, new_name=to)

    @step(instance=which)
    def reinstall(self, instance: int) -> None:
        name = self.instance(instance, self.rests)
        self.ask("INSTANCE_REINSTALL", instance_name=name, os_type="tiny")

    @step(instance=which, node=st.none() | nodes)
    def recreate(self, instance: int, node: str | None) -> None:
        if not self.roomy:
            return
        name = self.instance(instance, self.rests)
        to = {"nodes": [node]} if node else {}
        self.ask("INSTANCE_RECREATE_DISKS", instance_name=name, **to)

    @step(instance=which, template=st.sampled_from(("drbd", "plain")), node=nodes)
    def double_or_halve(self, instance: int, template: str, node: str) -> None:
        name = self.instance(instance, self.rests)
        to = {"remote_node": node} if template == "drbd" else {}
        asked = {"instance_name": name, "disk_template": template}
        self.ask("INSTANCE_SET_PARAMS", **asked, **to)

    @step(instance=which, memory=st.sampled_from((128, 256, 384)))
    def resize(self, instance: int, memory: int) -> None:
        name = self.instance(instance)
        self.ask("INSTANCE_SET_PARAMS", instance_name=name, beparams={"memory": memory})

    @step(instance=which)
    def power_off(self, instance: int) -> None:
        """Let a guest power itself off, when nobody is about to do anything."""
        self.rest()
        running = sorted(self.guests())
        if not running:
            return
        uuid = running[instance % len(running)]
        ((node, _),) = self.guests()[uuid]
        self.cluster.nodes.san.power_off(node, uuid)
        name = self.cluster.config.instance(uuid).name
        self.expected.instances[name].asleep = True

    @step()
    def watch(self) -> None:
        """Do what the watcher does, at times too late."""
        san, config = self.cluster.nodes.san, self.cluster.config
        alive = {key.split(" ")[1] for key in san.guests}
        ended = {key.split(" ")[1] for key in san.ended}
        for one in config.named(Instance):
            if one.admin_state != "up" or one.uuid in alive:
                continue
            if one.uuid in ended:
                by = {"if_ended": True, "admin_state_source": "user"}
                self.ask("INSTANCE_SHUTDOWN", instance_name=one.name, **by)
            else:
                self.ask("INSTANCE_STARTUP", instance_name=one.name, if_wanted=True)
