# SPDX-License-Identifier: BSD-2-Clause
"""Networks as queries show them."""

from moorage.model import Network, nice
from moorage.model.networks import in_order, outside, subnet, usage
from moorage.model.nicparams import NAMES
from moorage.ops.network.base import groups_of

from .field import COMMON, Field, Resource, attribute
from .objects import absent, by_name, every, keys
from .snapshot import Snapshot


def _groups(scene: Snapshot, one: Network) -> list[list[str]]:
    """Return each node group with mode, link and VLAN, as Ganeti does."""
    return [
        [group.name, *(str(group.networks[one.uuid].get(name) or "") for name in NAMES)]
        for group in groups_of(scene.config, one)
    ]


def _instances(scene: Snapshot, one: Network) -> list[str]:
    return sorted((each.name for each in scene.config.instances_in(one)), key=nice)


def _reserved(scene: Snapshot, one: Network) -> int:
    return len(outside(one) | scene.config.addresses_in(one))


NETWORK = Resource(
    name="network",
    fields=(
        attribute("name", "Network", "text", "Name"),
        attribute("network", "Subnet", "text", "Its IPv4 addresses"),
        attribute("gateway", "Gateway", "other", "IPv4 gateway"),
        attribute("network6", "IPv6Subnet", "other", "Its IPv6 addresses"),
        attribute("gateway6", "IPv6Gateway", "other", "IPv6 gateway"),
        attribute("mac_prefix", "MacPrefix", "other", "First bytes of its cards' MACs"),
        Field(
            "free_count",
            "FreeCount",
            "number",
            "Addresses that cards can get",
            lambda s, n: subnet(n).num_addresses - _reserved(s, n),
        ),
        Field(
            "reserved_count",
            "ReservedCount",
            "number",
            "Addresses that are taken",
            _reserved,
        ),
        Field(
            "map",
            "Map",
            "text",
            "A letter for each address: X is taken",
            lambda s, n: usage(n, s.config.addresses_in(n)),
        ),
        Field(
            "external_reservations",
            "ExternalReservations",
            "text",
            "Addresses that no card gets",
            lambda _s, n: ", ".join(in_order(outside(n))),
        ),
        Field("group_list", "GroupList", "other", "Where it is connected", _groups),
        Field(
            "group_cnt",
            "NodeGroups",
            "number",
            "How many node groups",
            lambda s, n: len(groups_of(s.config, n)),
        ),
        Field("inst_list", "InstanceList", "other", "Who has cards in it", _instances),
        Field(
            "inst_cnt",
            "Instances",
            "number",
            "How many instances have cards in it",
            lambda s, n: len(s.config.networked.get(n.uuid, ())),
        ),
        *COMMON,
    ),
    every=every(Network),
    order=by_name,
    keys=keys(Network),
    absent=absent(Network),
)
