# SPDX-License-Identifier: BSD-2-Clause
"""What operations on a storage pool that is there have in common."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from moorage.errors import BadInput, WrongState
from moorage.jobs import Lock, Operation, View
from moorage.model import Cluster, Config, Disk, NodeGroup, StoragePool
from moorage.model.objects import REUSE, reuses
from moorage.storage import template_named
from moorage.units import shortened

_SHOWN = 10
"""Disks that a sentence names."""


class OnPool(Operation, frozen=True, kw_only=True):
    """An operation on one storage pool.

    Attributes
    ----------
    pool_name
        Name or uuid of the storage pool.
    """

    pool_name: str

    def pool(self, view: View) -> StoragePool:
        """Return the pool."""
        return view.config.pool(self.pool_name)

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the pool, so that no disk comes into it meanwhile."""
        yield Lock("pool", self.pool(view).uuid)


def presets(
    cluster: Cluster, template: str, provider: str | None, params: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the parameters that a pool presets, as its disks will keep them.

    Raises
    ------
    BadInput
        If no disk of the template could have them.
    """
    named = {"provider": provider} if provider else {}
    if reuses(params):
        raise BadInput(f"{REUSE}=True is said of one disk: no pool presets it")
    whole = {**cluster.diskparams.get(template, {}), **params, **named}
    kept = template_named(template).parameters(whole)
    return {name: kept[name] for name in params if name != "provider"}


def check_unused(
    config: Config, pool: StoragePool, disks: list[Disk], why: str
) -> None:
    """Raise `WrongState` if there are disks; the sentence and the facts list them.

    Parameters
    ----------
    why
        What cannot be done, as the beginning of a sentence.
    """
    if not disks:
        return
    told = shortened([_whose(config, disk) for disk in disks], _SHOWN)
    count = "a disk uses it" if len(disks) == 1 else f"{len(disks)} disks use it"
    raise WrongState(
        f"{why}: {count}: {told}",
        hint=f"gnt-disk list 'pool == \"{pool.name}\"'",
        disks=[disk.uuid for disk in disks],
    )


def _whose(config: Config, disk: Disk) -> str:
    owner = config.owner(disk)
    return f"{disk.label} ({owner.name if owner else 'detached'})"


def in_group(config: Config, pool: StoragePool, group: NodeGroup) -> list[Disk]:
    """Return the disks of a pool that are used in a group, or were last."""
    return [disk for disk in config.disks_in(pool) if disk.group == group.uuid]


def named_groups(config: Config, names: Iterable[str]) -> list[NodeGroup]:
    """Return some groups, each once, in the order in which they are named."""
    return list({group.uuid: group for group in map(config.group, names)}.values())
