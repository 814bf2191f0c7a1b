# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-cluster verify``: compare what is with what the configuration says."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from moorage.jobs import Lock, Operation, Question, View
from moorage.model import Disk, Instance, Node
from moorage.ops.certificates import authority_on
from moorage.ops.node_tasks import providers_on

from . import (
    checks_certificates,
    checks_defaults,
    checks_devices,
    checks_disks,
    checks_guests,
    checks_mirrors,
    checks_names,
    checks_networks,
    checks_nodes,
    checks_policy,
    checks_pools,
    checks_storage,
    checks_survival,
)
from .observation import Finding, Seen, room_and_facts_on, see

CHECKS: tuple[Callable[[Seen], Iterable[Finding]], ...] = (
    checks_defaults.presets,
    checks_nodes.silent,
    checks_nodes.masters,
    checks_nodes.versions,
    checks_certificates.nodes,
    checks_certificates.master,
    checks_guests.instances,
    checks_guests.standing_still,
    checks_guests.strangers,
    checks_guests.plugged,
    checks_disks.quarantined,
    checks_disks.leftovers,
    checks_disks.missing,
    checks_mirrors.mirrors,
    checks_mirrors.strangers,
    checks_names.disks,
    checks_networks.bridges,
    checks_networks.addresses,
    checks_policy.sizes,
    checks_storage.directories,
    checks_storage.units,
    checks_storage.allowed,
    checks_storage.providers,
    checks_pools.pools,
    checks_devices.devices,
    checks_devices.shared,
    checks_devices.sizes,
    checks_survival.losses,
)
"""Every check; each one is a pure function of what was seen."""


class ClusterVerify(Operation, frozen=True, kw_only=True):
    """Compare the configuration with what the nodes say.

    It holds no locks: it must work when something hangs. So what a job is changing
    at the moment may show up.
    """

    op_id = "OP_CLUSTER_VERIFY"
    looks = True

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold nothing."""
        del view
        return iter(())

    def questions(self, view: View) -> Iterator[Question]:
        """Ask every node that is not marked offline for all that it knows."""
        config = view.config
        yield authority_on(view)
        for node in config.named(Node):
            if not node.offline:
                yield room_and_facts_on(config, node)
                yield providers_on(node.uuid)
        yield from checks_devices.ask(config)
        yield from checks_mirrors.ask(config)
        yield from checks_pools.ask(config)

    def check(self, view: View) -> None:
        """Refuse nothing: a cluster in any state can be looked at. Look at it."""
        self.found(view)

    def found(self, view: View) -> dict[str, Any]:
        """Return errors, warnings, and how much was looked at."""
        return view.once("found", lambda: _looked(see(view)))

    def result(self, view: View, results: Sequence[Any]) -> dict[str, Any]:
        """Return what :meth:`found` does."""
        del results
        return self.found(view)


def _looked(seen: Seen) -> dict[str, Any]:
    found = [one for check in CHECKS for one in check(seen)]
    return {
        "errors": [one.to_json() for one in found if not one.warning],
        "warnings": [one.to_json() for one in found if one.warning],
        "checked": _counted(seen),
    }


def _counted(seen: Seen) -> dict[str, int]:
    config = seen.config
    return {
        "nodes": config.count(Node),
        "nodes that answered": len(seen.facts),
        "instances": config.count(Instance),
        "disks": config.count(Disk),
        "guests": sum(len(facts.guests) for facts in seen.facts.values()),
    }
