# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-network modify``: gateways, reserved addresses, the prefix of MACs."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from moorage.errors import BadInput, Exists
from moorage.jobs import Task, View
from moorage.model import Network
from moorage.model.networks import check, checked_addresses, in_order, subnet
from moorage.model.nicparams import checked_prefix

from .base import OnNetwork

_WORDS = ("gateway", "network6", "gateway6", "mac_prefix")


class NetworkSetParams(OnNetwork, frozen=True, kw_only=True):
    """Change a network; the word ``none`` takes a value away.

    Attributes
    ----------
    gateway
        Its IPv4 gateway, one of its addresses.
    network6
        Its IPv6 addresses, as ``2001:db8::/64``.
    gateway6
        Its IPv6 gateway, one of its IPv6 addresses.
    mac_prefix
        First three bytes of its cards' hardware addresses.
    add_reserved_ips
        Addresses that no card gets from now on, or ranges ``A-B``.
    remove_reserved_ips
        Addresses that cards may get again, or ranges ``A-B``.
    """

    op_id = "OP_NETWORK_SET_PARAMS"

    gateway: str | None = None
    network6: str | None = None
    gateway6: str | None = None
    mac_prefix: str | None = None
    add_reserved_ips: tuple[str, ...] | None = None
    remove_reserved_ips: tuple[str, ...] | None = None

    def after(self, view: View) -> Network:
        """Return the network as it is to be; raise `Refused` if it cannot be so."""
        network = self.known(view)
        given = {name: getattr(self, name) for name in _WORDS}
        new: dict[str, Any] = {
            name: None if value in ("none", "") else value
            for name, value in given.items()
            if value is not None
        }
        if new.get("mac_prefix"):
            new["mac_prefix"] = checked_prefix(new["mac_prefix"])
        new["reserved"] = self._reserved(network)
        changed = replace(network, **new)
        check(changed)
        self._check_free(view, network, changed)
        return changed

    def _reserved(self, network: Network) -> tuple[str, ...]:
        net, known = subnet(network), set(network.reserved)
        more = checked_addresses(self.add_reserved_ips or (), net)
        less = checked_addresses(self.remove_reserved_ips or (), net)
        for ip in in_order(less - known):
            if ip == network.gateway:
                raise BadInput(
                    f"{ip} is the gateway of network '{network.name}'",
                    hint=f"gnt-network modify --gateway=none {network.name}",
                )
            raise BadInput(
                f"{ip} is not reserved in network '{network.name}'",
                hint=f"gnt-network info {network.name}",
            )
        return in_order((known | more) - less)

    def _check_free(self, view: View, old: Network, new: Network) -> None:
        """Raise `Exists` if a card has an address that no card is to have."""
        held = view.config.addresses_in(old)
        claims = {ip for one in view.claims for uuid, ip in one.addresses if uuid}
        wanted = {*new.reserved, new.gateway} - {*old.reserved, old.gateway}
        for ip in sorted(filter(None, wanted & (held | claims))):
            owners = view.config.holders_of((old.uuid, ip))
            who = owners[0].name if owners else "an instance that is being made"
            raise Exists(f"a network card of {who} has the IP address {ip}")

    def check(self, view: View) -> None:
        """Refuse what does not fit together, and addresses that are in use."""
        fields = (*_WORDS, "add_reserved_ips", "remove_reserved_ips")
        if all(getattr(self, name) is None for name in fields):
            raise BadInput(
                "nothing to change was named", hint="gnt-network modify --help"
            )
        self.after(view)

    def tasks(self, view: View) -> Iterator[Task]:
        """Record the changes."""
        old, new = self.known(view), self.after(view)
        fields = {name: getattr(new, name) for name in (*_WORDS, "reserved")}
        yield view.change(f"change network {old.name}", old, **fields)
