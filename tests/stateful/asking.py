# SPDX-License-Identifier: BSD-2-Clause
"""The small parts of requests: which disk, which instance, as what."""

from collections.abc import Callable, Sequence
from typing import Any

from life import INSTANCES, LOCAL, MOST_DISKS, NODES, Life
from things import Instance as Wanted

from moorage.model import Instance, pair_of

Fit = Callable[[Wanted], bool]
"""Whether a request makes sense for an instance."""


class Asking(Life):
    """A life in which people ask for what makes sense, mostly."""

    @property
    def taken(self) -> list[str]:
        """The disks that an instance has, as it was in the last quiet moment."""
        return sorted(u for it in self.expected.instances.values() for u in it.disks)

    @property
    def free(self) -> list[str]:
        """The disks that belonged to nobody then."""
        return sorted(self.expected.disks.keys() - set(self.taken))

    @property
    def roomy(self) -> bool:
        """Whether more disks may be made."""
        return len(self.expected.disks) < MOST_DISKS

    @property
    def crowded(self) -> bool:
        """Whether an instance may go: most that is asked for needs one."""
        return len(self.expected.instances) > 2

    @staticmethod
    def runs(instance: Wanted) -> bool:
        """Whether an instance should run."""
        return instance.up

    @staticmethod
    def rests(instance: Wanted) -> bool:
        """Whether an instance should not run."""
        return not instance.up

    def new(self, kind: dict[str, Any]) -> dict[str, Any]:
        """Return the description of a disk that is made with an instance."""
        rest = {key: kind[key] for key in kind if key != "disk_template"}
        number = next(self.fresh)
        return {"name": f"disk{number}", "size": 32 * (number % 8 + 1), **rest}

    @staticmethod
    def place(number: int, kind: dict[str, Any]) -> dict[str, Any]:
        """Return what a disk is made as, with a node or two where it wants them."""
        template, node = kind.get("disk_template"), NODES[number % len(NODES)]
        if template == "drbd":
            first = "" if number % 3 else NODES[(number + 1) % len(NODES)]
            return {**kind, "node": f"{first}:{node}"}
        return {**kind, **({"node": node} if template in LOCAL else {})}

    def partner(self, name: str, node: str) -> str:
        """Return the node that keeps an instance's second copies, or else another."""
        if not self.cluster.config.knows(Instance, name):
            return node
        config = self.cluster.config
        instance = config.instance(name)
        pairs = filter(None, map(pair_of, config.disks_of(instance)))
        others = [one.other(instance.primary_node) for one in pairs]
        return config.node(others[0]).name if others else node

    def instance(self, number: int, fit: Fit = lambda _: True) -> str:
        """Return the name of an instance, mostly of one that there is and that fits."""
        there = self.expected.instances
        found = [name for name, it in there.items() if fit(it)] or list(there)
        among = found if found and number else INSTANCES
        return among[number % len(among)]

    def on_disk(
        self, op: str, number: int, among: Sequence[str] = (), **fields: Any
    ) -> None:
        """Ask for something on a disk, mostly on one of those named."""
        if self.expected.disks:
            self.ask(op, disk=self.disk(number, among), **fields)

    def disk(self, number: int, among: Sequence[str] = ()) -> str:
        """Return the uuid of a disk."""
        disks = among if among and number % 4 else sorted(self.expected.disks)
        return disks[number % len(disks)]
