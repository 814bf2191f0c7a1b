# SPDX-License-Identifier: BSD-2-Clause
"""What operations on networks have in common."""

from collections.abc import Iterator

from moorage.errors import WrongState
from moorage.jobs import Lock, Operation, View
from moorage.model import Config, Instance, Network, NodeGroup
from moorage.units import shortened

_SHOWN = 10
"""Instances that a sentence names."""


class OnNetwork(Operation, frozen=True, kw_only=True):
    """An operation on one network.

    Attributes
    ----------
    network_name
        Name or uuid of the network.
    """

    network_name: str

    def known(self, view: View) -> Network:
        """Return the network."""
        return view.config.network(self.network_name)

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the network, so that no card comes into it meanwhile."""
        yield Lock("network", self.known(view).uuid)


def check_unused(why: str, instances: list[Instance]) -> None:
    """Raise `WrongState` if there are instances; the sentence lists them.

    Parameters
    ----------
    why
        What cannot be done, as the beginning of a sentence.
    """
    if instances:
        told = shortened([one.name for one in instances], _SHOWN)
        raise WrongState(
            f"{why}: cards of {told} are in it",
            hint=f"gnt-instance info {instances[0].name}",
        )


def groups_of(config: Config, network: Network) -> list[NodeGroup]:
    """Return the node groups that are connected to a network, by name."""
    return [one for one in config.named(NodeGroup) if network.uuid in one.networks]
