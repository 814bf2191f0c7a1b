# SPDX-License-Identifier: BSD-2-Clause
"""Parameters of disks that exist: what a template or a provider lets change."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from moorage.errors import BadInput, MoorageError, WrongState
from moorage.jobs import Question, Run, View
from moorage.model import Config, Disk, Node, Provider
from moorage.model.objects import REUSE, reuses
from moorage.ops.asking import node_tasks
from moorage.ops.asking.node_tasks import providers_on
from moorage.storage.provider import check_parameters, provider_called

from .disk_access import able, check_provider, group_of, online, template


def fixed(disk: Disk) -> frozenset[str]:
    """Return the parameters that a disk keeps for life: those that say where it is."""
    known = able(disk).facts.parameters
    return frozenset(one.name for one in known if one.fixed)


def reparametrised(disk: Disk, params: dict[str, Any]) -> dict[str, Any]:
    """Return the changes of new parameters; the value ``default`` drops one.

    Raises
    ------
    BadInput
        For what says where the data is, or that it was there before the disk, which
        a disk keeps for life, and for what the template does not have.
    """
    kept = sorted(fixed(disk) & params.keys())
    if kept:
        raise BadInput(f"a disk's '{kept[0]}' cannot be changed", disk=disk.uuid)
    merged = {**disk.params, **params}
    wanted = {key: value for key, value in merged.items() if value != "default"}
    if reuses(wanted) and not disk.was_there:
        raise BadInput(
            f"the volume of disk {disk.label} was made for it: {REUSE} can only be "
            "said of a new disk",
            disk=disk.uuid,
        )
    return {"params": template(disk).parameters(wanted), "adopted": disk.was_there}


def ask_listed(config: Config, disk: Disk) -> Iterator[Question]:
    """Ask the nodes that use a disk what :func:`check_listed` must know."""
    if able(disk).provider:
        for node in online(config, group_of(config, disk)):
            yield providers_on(node.uuid)


def check_listed(view: View, disk: Disk, params: dict[str, Any]) -> None:
    """Raise `Refused` for a new value of a parameter that the provider does not list.

    One that goes may be unlisted: that is how it is got rid of.
    """
    new = {key: value for key, value in params.items() if value != "default"}
    if not able(disk).provider or not new:
        return
    name = str(disk.logical_id[0])
    valid = list(_valid(view, disk, name))
    if not valid:
        raise WrongState(
            f"no node tells which parameters ExtStorage provider '{name}' takes",
            hint="--force-params goes on without",
        )
    for provider in valid:
        check_parameters(new, provider)


def verified(view: View, disk: Disk) -> Iterator[Run]:
    """Yield the task in which the storage looks at a disk's new parameters.

    The node that uses the disk asks it, or one that may; where none can, and nobody
    insisted on a list, nobody asks.
    """
    node = next(_askable(view, disk), None)
    if node:
        yield from node_tasks.verify(view.config, disk, node)


def _askable(view: View, disk: Disk) -> Iterator[Node]:
    """Yield the nodes with a valid provider, the disk's user first."""
    owner = view.config.owner(disk)
    for node in sorted(
        online(view.config, group_of(view.config, disk)),
        key=lambda node: node.uuid != (owner.primary_node if owner else disk.last_node),
    ):
        with suppress(MoorageError):
            check_provider(view, disk, node)
            yield node


def _valid(view: View, disk: Disk, name: str) -> Iterator[Provider]:
    for node in online(view.config, group_of(view.config, disk)):
        found = provider_called(name, view.told(providers_on(node.uuid)) or [])
        if found and not found.problem:
            yield found
