# SPDX-License-Identifier: BSD-2-Clause
"""Networks as queries show them."""

from moorage.model import Network, nice
from moorage.model.networks import in_order, outside, subnet, usage
from moorage.model.nicparams import WAYS
from moorage.ops.network.base import groups_of

from .field import number, other, text
from .objects import resource
from .snapshot import Snapshot


def _groups(snapshot: Snapshot, one: Network) -> list[list[str]]:
    """Return each node group with mode, link and VLAN, as Ganeti does."""
    return [
        [group.name, *(str(group.networks[one.uuid].get(name) or "") for name in WAYS)]
        for group in groups_of(snapshot.config, one)
    ]


def _instances(snapshot: Snapshot, one: Network) -> list[str]:
    return sorted((each.name for each in snapshot.config.instances_in(one)), key=nice)


def _reserved(snapshot: Snapshot, one: Network) -> int:
    return len(outside(one) | snapshot.config.addresses_in(one))


NETWORK = resource(
    "network",
    Network,
    fields=(
        text("name", "Network", "Name"),
        text("network", "Subnet", "Its IPv4 addresses"),
        other("gateway", "Gateway", "IPv4 gateway"),
        other("network6", "IPv6Subnet", "Its IPv6 addresses"),
        other("gateway6", "IPv6Gateway", "IPv6 gateway"),
        other("mac_prefix", "MacPrefix", "First bytes of its cards' MACs"),
        number(
            "free_count",
            "FreeCount",
            "Addresses that cards can get",
            lambda s, n: subnet(n).num_addresses - _reserved(s, n),
        ),
        number(
            "reserved_count", "ReservedCount", "Addresses that are taken", _reserved
        ),
        text(
            "map",
            "Map",
            "A letter for each address: X is taken",
            lambda s, n: usage(n, s.config.addresses_in(n)),
        ),
        text(
            "external_reservations",
            "ExternalReservations",
            "Addresses that no card gets",
            lambda _s, n: ", ".join(in_order(outside(n))),
        ),
        other("group_list", "GroupList", "Where it is connected", _groups),
        number(
            "group_cnt",
            "NodeGroups",
            "How many node groups",
            lambda s, n: len(groups_of(s.config, n)),
        ),
        other("inst_list", "InstanceList", "Who has cards in it", _instances),
        number(
            "inst_cnt",
            "Instances",
            "How many instances have cards in it",
            lambda s, n: len(s.config.networked.get(n.uuid, ())),
        ),
    ),
)
