# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-network remove`` and ``rename``."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from moorage.errors import WrongState
from moorage.jobs import Lock, Task, View
from moorage.jobs.unread import Moot
from moorage.model import Network
from moorage.ops.new_names import check_new_name

from .base import OnNetwork, check_unused, groups_of


class NetworkRemove(OnNetwork, frozen=True, kw_only=True):
    """Remove a network that nothing is connected to."""

    op_id = "OP_NETWORK_REMOVE"

    force: Annotated[bool, Moot("only people are asked")] = False

    def check(self, view: View) -> None:
        """Refuse while a card is in it, or a node group connected."""
        config, network = view.config, self.known(view)
        what = f"network '{network.name}' cannot be removed"
        check_unused(what, config.instances_in(network))
        groups = ", ".join(one.name for one in groups_of(config, network))
        if groups:
            raise WrongState(
                f"{what}: it is connected to node group {groups}",
                hint=f"gnt-network disconnect {network.name}",
            )

    def tasks(self, view: View) -> Iterator[Task]:
        """Forget it."""
        network = self.known(view)
        yield view.record(f"forget network {network.name}", drop=(network,))


class NetworkRename(OnNetwork, frozen=True, kw_only=True):
    """Give a network another name.

    Attributes
    ----------
    new_name
        One that no other network has.
    """

    op_id = "OP_NETWORK_RENAME"

    new_name: str

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the network and the new name."""
        yield from OnNetwork.locks(self, view)
        yield Lock("network", self.new_name)

    def check(self, view: View) -> None:
        """Refuse a name that is taken."""
        self.known(view)
        check_new_name(view.config, Network, self.new_name)

    def tasks(self, view: View) -> Iterator[Task]:
        """Record the name."""
        network = self.known(view)
        what = f"rename network {network.name} to {self.new_name}"
        yield view.change(what, network, name=self.new_name)

    def result(self, _view: View, _results: Sequence[Any]) -> str:
        """Return the new name."""
        return self.new_name
