# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-network add``: a pool of addresses gets a name."""

from collections.abc import Iterator, Sequence
from typing import Any

from moorage.jobs import Lock, Operation, Task, View
from moorage.model import Config, Network, Node
from moorage.model.networks import (
    check,
    checked_addresses,
    checked_subnet,
    contains,
    in_order,
)
from moorage.model.nicparams import checked_prefix
from moorage.ops.new_names import check_new_name
from moorage.storage.validation import check_tags


class NetworkAdd(Operation, frozen=True, kw_only=True):
    """Make a network.

    Attributes
    ----------
    network_name
        One that no other network has.
    tags
        Tags that it has from the beginning.
    network
        Its IPv4 addresses, as ``192.0.2.0/24``.
    gateway
        Its IPv4 gateway, one of its addresses.
    network6
        Its IPv6 addresses, as ``2001:db8::/64``.
    gateway6
        Its IPv6 gateway, one of its IPv6 addresses.
    mac_prefix
        First three bytes of its cards' hardware addresses.
    add_reserved_ips
        Addresses that no card gets, or ranges ``A-B``.
    conflicts_check
        Whether addresses of the cluster's nodes are reserved, too.
    """

    op_id = "OP_NETWORK_ADD"

    network_name: str
    network: str
    gateway: str | None = None
    network6: str | None = None
    gateway6: str | None = None
    mac_prefix: str | None = None
    add_reserved_ips: tuple[str, ...] | None = None
    conflicts_check: bool = True
    tags: tuple[str, ...] = ()

    def locks(self, _view: View) -> Iterator[Lock]:
        """Hold the name."""
        yield Lock("network", self.network_name)

    def made(self, view: View) -> Network:
        """Return the network; raise `Refused` if there can be none like it."""
        net = checked_subnet(self.network)
        network = Network(
            uuid=view.fresh(),
            name=self.network_name,
            network=str(net),
            gateway=self.gateway or None,
            network6=self.network6 or None,
            gateway6=self.gateway6 or None,
            mac_prefix=checked_prefix(self.mac_prefix) if self.mac_prefix else None,
            reserved=in_order(
                checked_addresses(self.add_reserved_ips or (), net)
                | {ip for _, ip in self._nodes(view.config)}
            ),
            ctime=view.now,
            mtime=view.now,
            tags=check_tags(self.tags),
        )
        check(network)
        return network

    def _nodes(self, config: Config) -> Iterator[tuple[str, str]]:
        """Yield whose addresses are reserved, and which."""
        if not self.conflicts_check:
            return
        bare = Network(uuid="", name="", network=str(checked_subnet(self.network)))
        owners = [("the cluster's master", config.cluster.master_ip)]
        for node in config.named(Node):
            pair = (node.primary_ip, node.secondary_ip)
            owners += [(f"node {node.name}", ip) for ip in dict.fromkeys(pair)]
        for whose, ip in owners:
            if contains(bare, ip):
                yield whose, ip

    def check(self, view: View) -> None:
        """Refuse a name that is taken, and addresses that do not fit together."""
        check_new_name(view.config, Network, self.network_name)
        self.made(view)

    def warnings(self, view: View) -> Iterator[str]:
        """Tell whose addresses are reserved."""
        for whose, ip in self._nodes(view.config):
            yield f"Reserved IP address of {whose} ({ip})"

    def tasks(self, view: View) -> Iterator[Task]:
        """Record it."""
        yield view.record(f"record network {self.network_name}", self.made(view))

    def result(self, _view: View, results: Sequence[Any]) -> str:
        """Return the uuid."""
        return str(results[-1][0])
