# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-network connect`` and ``disconnect``: how a node group's nodes reach it."""

from collections.abc import Iterator, Mapping

from moorage.errors import BadInput, WrongState
from moorage.jobs import Lock, Question, Task, View
from moorage.model import Instance, NodeGroup, nicparams
from moorage.model.kinds import NicMode
from moorage.model.networks import contains, subnet
from moorage.model.nicparams import NicParams
from moorage.ops.planning import links, placement
from moorage.ops.volumes.disk_access import online

from .base import OnNetwork, check_unused


class OfGroup(OnNetwork, frozen=True, kw_only=True):
    """An operation on a network and a node group.

    Attributes
    ----------
    group_name
        Name or uuid of the node group.
    """

    group_name: str

    def group(self, view: View) -> NodeGroup:
        """Return the group."""
        return view.config.group(self.group_name)

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold both."""
        yield Lock("group", self.group(view).uuid)
        yield from OnNetwork.locks(self, view)

    def residents(self, view: View) -> list[Instance]:
        """Return the instances of the group."""
        config = view.config
        nodes = config.nodes_in(self.group(view))
        return [one for node in nodes for one in config.instances_on(node)]


class NetworkConnect(OfGroup, frozen=True, kw_only=True):
    """Let cards in a network be on the nodes of a group.

    Attributes
    ----------
    network_mode
        How its cards are connected there; as the cluster's defaults say without it.
    network_link
        The bridge or the routing table of its cards there; that of the cluster's
        defaults without it.
    network_vlan
        The VLAN of its cards there; that of the cluster's defaults without it.
    network_filter
        What its cards are held to there: ``mac``, ``ip`` or ``none``; as the cluster's
        defaults say without it.
    conflicts_check
        Whether no instance of the group may have one of its addresses already, nor
        another network that is connected there in the same way.
    """

    op_id = "OP_NETWORK_CONNECT"

    network_mode: NicMode | None = None
    network_link: str | None = None
    network_vlan: str | None = None
    network_filter: str | None = None
    conflicts_check: bool = True

    def params(self, view: View) -> NicParams:
        """Return how its cards are connected; raise `BadInput` if they cannot be."""
        given = {
            "mode": self.network_mode,
            "link": self.network_link,
            "vlan": self.network_vlan,
            "filter": self.network_filter,
        }
        own = nicparams.checked({k: v for k, v in given.items() if v is not None})
        found = nicparams.over(nicparams.defaults(view.config.cluster), own).params()
        nicparams.check_whole(found)
        if not found.connected:
            raise BadInput(
                f"network '{self.network_name}' is {found.mode}: name its bridge",
                hint="gnt-network connect -N link=br0 "
                f"{self.network_name} {self.group_name}",
            )
        return found

    def questions(self, view: View) -> Iterator[Question]:
        """Ask the nodes of the group for their bridges."""
        for node in online(view.config, self.group(view)):
            yield placement.room_on(view.config, node)

    def _told(self, view: View) -> dict[str, str]:
        found = self.params(view)
        told = {name: getattr(found, name) for name in nicparams.WAYS}
        asked = self.network_filter is not None
        return told | ({"filter": found.filter} if asked else {})

    def check(self, view: View) -> None:
        """Refuse another way than it is connected, and addresses that are in use."""
        network, group = self.known(view), self.group(view)
        now = group.networks.get(network.uuid)
        if now is not None and _way(now) != _way(self._told(view)):
            raise WrongState(
                f"network '{network.name}' is connected to node group {group.name} "
                f"already: mode {now.get('mode')}, link {now.get('link')}",
                hint=f"gnt-network disconnect {network.name} {group.name}",
            )
        if self.conflicts_check and now is None:
            self._check_conflicts(view)

    def _check_conflicts(self, view: View) -> None:
        network, group = self.known(view), self.group(view)
        for uuid, told in group.networks.items():
            other = view.config.network(uuid)
            alike = _way(told) == _way(self._told(view))
            if alike and subnet(other).overlaps(subnet(network)):
                raise WrongState(
                    f"network '{network.name}' shares addresses with network "
                    f"'{other.name}', which is connected to node group {group.name} "
                    "in the same way",
                    hint="another link or vlan, or --no-conflicts-check",
                )
        for instance in self.residents(view):
            for number, nic in enumerate(instance.nics):
                if nic.ip and not nic.network and contains(network, nic.ip):
                    raise WrongState(
                        f"network card {number} of instance {instance.name} has "
                        f"{nic.ip}, and is not in network '{network.name}'",
                        hint="gnt-instance modify --net "
                        f"{number}:ip=none {instance.name}, or --no-conflicts-check",
                    )

    def warnings(self, view: View) -> Iterator[str]:
        """Tell which nodes lack the bridge: an instance with a card cannot go there."""
        want = links.wanted(self.params(view))
        told = placement.room(view)
        for node in online(view.config, self.group(view)) if want else ():
            facts = told.get(node.uuid)
            if want and facts and facts.links is not None:
                why = links.problem(facts.links, want)
                if why:
                    yield f"node {node.name} is not fit for it: {why}"

    def tasks(self, view: View) -> Iterator[Task]:
        """Record the connection; of one that is there, what its cards are held to."""
        network, group = self.known(view), self.group(view)
        now = group.networks.get(network.uuid, {})
        if now and self.network_filter is None:
            return
        networks = {**group.networks, network.uuid: {**now, **self._told(view)}}
        what = f"connect network {network.name} to node group {group.name}"
        yield view.change(what, group, networks=networks)


def _way(told: Mapping[str, str]) -> dict[str, str]:
    """Return where a connection leads, whatever its cards are held to."""
    return {name: told.get(name, "") for name in nicparams.WAYS}


class NetworkDisconnect(OfGroup, frozen=True, kw_only=True):
    """Let no card in a network be on the nodes of a group any more."""

    op_id = "OP_NETWORK_DISCONNECT"

    def check(self, view: View) -> None:
        """Refuse while an instance of the group has a card in it."""
        network, group = self.known(view), self.group(view)
        if network.uuid not in group.networks:
            raise WrongState(
                f"network '{network.name}' is not connected to node group {group.name}",
                hint=f"gnt-network info {network.name}",
            )
        inside = [
            one
            for one in self.residents(view)
            if any(nic.network == network.uuid for nic in one.nics)
        ]
        what = (
            f"network '{network.name}' cannot be disconnected from node group "
            f"{group.name}"
        )
        check_unused(what, inside)

    def tasks(self, view: View) -> Iterator[Task]:
        """Record it."""
        network, group = self.known(view), self.group(view)
        left = {u: one for u, one in group.networks.items() if u != network.uuid}
        what = f"disconnect network {network.name} from node group {group.name}"
        yield view.change(what, group, networks=left)
