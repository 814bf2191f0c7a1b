# SPDX-License-Identifier: BSD-2-Clause
"""Storage pools: what they mean for a new disk, and where their disks can be used."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from moorage.errors import BadInput, WrongState
from moorage.jobs import Lock
from moorage.model import Config, Disk, NodeGroup, StoragePool
from moorage.storage import naming


def hold(pools: Iterable[str | None]) -> list[Lock]:
    """Share pools (uuids), so that none is disconnected or removed meanwhile."""
    named = dict.fromkeys(filter(None, pools))
    return [Lock("pool", uuid, shared=True) for uuid in named]


def hold_named(config: Config, name: object) -> Iterator[Lock]:
    """Share the pool that a request names, if it names one."""
    yield from hold([config.pool(str(name)).uuid if name else None])


def chosen_template(pool: StoragePool, asked: object) -> str:
    """Return the template of a pool's disks; raise `BadInput` if another is asked."""
    if asked and asked != pool.template:
        raise BadInput(
            f"storage pool '{pool.name}' is of disk template '{pool.template}', not "
            f"'{asked}'",
            hint=f"leave the template out: pool={pool.name}",
        )
    return pool.template


def completed(pool: StoragePool, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with the pool's provider; raise `BadInput` for another."""
    if pool.provider is None:
        return dict(params)
    named = params.get("provider", pool.provider)
    if named != pool.provider:
        raise BadInput(
            f"storage pool '{pool.name}' is of ExtStorage provider '{pool.provider}', "
            f"not '{named}'",
            hint=f"leave the provider out: pool={pool.name}",
        )
    return {**params, "provider": pool.provider}


def volume_name(pool: StoragePool, unique: str, instance: str, index: int) -> str:
    """Return the name of a new volume by the pool's pattern; empty for none."""
    words = naming.words_for(unique, instance, index, pool.name)
    return naming.volume_name(pool.volume_name, pool.longest, words)


def groups_of(config: Config, pool: StoragePool) -> list[NodeGroup]:
    """Return the node groups that a pool is connected to, by name."""
    return [group for group in config.named(NodeGroup) if group.uuid in pool.groups]


def check_connected(
    config: Config, pool: StoragePool, group: NodeGroup, disk: Disk | None = None
) -> None:
    """Raise `WrongState` unless a pool's disks, as `disk`, can be used in a group."""
    if group.uuid in pool.groups:
        return
    names = ", ".join(one.name for one in groups_of(config, pool))
    what = f"storage pool '{pool.name}'"
    subject = f"disk {disk.label} is in {what}, which" if disk else what
    raise WrongState(
        f"{subject} is not connected to node group {group.name}, "
        + (f"only to {names}" if names else "nor to any other"),
        hint=f"gnt-storage pool connect {pool.name} {group.name}",
        pool=pool.name,
        group=group.name,
    )


def check_used_in(config: Config, disk: Disk, group: NodeGroup) -> None:
    """Raise `WrongState` unless a disk can be used in a node group."""
    pool = config.pool_of(disk)
    if pool:
        check_connected(config, pool, group, disk)
