# SPDX-License-Identifier: BSD-2-Clause
"""What people ask for of networks and network cards, in any order."""

from typing import Any

from asking import Asking
from hypothesis import strategies as st
from life import GROUPS, step, which

NETWORKS = ("lan", "dmz", "void")
SUBNET = "198.18.0.0/29"
"""Room for six addresses, of which one is reserved: there are too few for all."""
networks = st.sampled_from(NETWORKS)
groups = st.sampled_from(GROUPS)
cards = st.sampled_from(
    (
        *({"network": name, "ip": "pool"} for name in NETWORKS),
        *({"network": name, "ip": "198.18.0.4"} for name in NETWORKS),
        {"network": "lan"},
        {"link": "br0", "mode": "bridged"},
    )
)
CHANGES: tuple[dict[str, str], ...] = (
    {"ip": "pool"},
    {"ip": "none"},
    {"ip": "198.18.0.3"},
    {"network": "none"},
    {"link": "br1"},
    *({"network": name, "ip": "pool"} for name in NETWORKS),
)


class Networks(Asking):
    """Requests that name a network, or a card."""

    @step(name=networks)
    def make_network(self, name: str) -> None:
        reserved = {"add_reserved_ips": ["198.18.0.6"]}
        self.ask("NETWORK_ADD", network_name=name, network=SUBNET, **reserved)

    @step(name=networks)
    def remove_network(self, name: str) -> None:
        self.ask("NETWORK_REMOVE", network_name=name)

    @step(name=networks, to=networks)
    def rename_network(self, name: str, to: str) -> None:
        self.ask("NETWORK_RENAME", network_name=name, new_name=to)

    @step(name=networks, group=groups, link=st.sampled_from(("br0", "br1")))
    def connect_network(self, name: str, group: str, link: str) -> None:
        how = {"network_link": link, "conflicts_check": False}
        self.ask("NETWORK_CONNECT", network_name=name, group_name=group, **how)

    @step(name=networks, group=groups)
    def disconnect_network(self, name: str, group: str) -> None:
        self.ask("NETWORK_DISCONNECT", network_name=name, group_name=group)

    @step(instance=which, card=cards)
    def add_card(self, instance: int, card: dict[str, Any]) -> None:
        self.rewire(instance, ["add", "-1", card])

    @step(instance=which, card=cards)
    def replace_card(self, instance: int, card: dict[str, Any]) -> None:
        """Take the first card, and give another in the same request."""
        self.rewire(instance, ["remove", "0", {}], ["add", "-1", card])

    @step(instance=which, number=st.sampled_from((0, 0, 0, 1)))
    def remove_card(self, instance: int, number: int) -> None:
        self.rewire(instance, ["remove", str(number), {}])

    @step(
        instance=which,
        number=st.sampled_from((0, 0, 0, 1)),
        change=st.sampled_from(CHANGES),
    )
    def change_card(self, instance: int, number: int, change: dict[str, str]) -> None:
        self.rewire(instance, ["modify", str(number), change])

    def rewire(self, instance: int, *mods: list[Any]) -> None:
        new = mods[0][0] == "add"
        name = self.instance(instance, lambda it: new or bool(it.cards))
        self.ask("INSTANCE_SET_PARAMS", instance_name=name, nics=list(mods))
