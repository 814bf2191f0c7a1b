# SPDX-License-Identifier: BSD-2-Clause
"""Whether disks of a pool could be used on the nodes of a group: ask, and judge."""

from collections.abc import Iterable, Iterator

from moorage.errors import NotFound, WrongState
from moorage.jobs import Ask, Question, View
from moorage.model import Config, Examined, Node, NodeGroup, StoragePool
from moorage.ops.asking.node_tasks import providers_on
from moorage.ops.volumes.directories import place
from moorage.ops.volumes.disk_access import online, providers
from moorage.protocol import ExamineStorage
from moorage.storage.provider import check_parameters, provider_called


def examined_on(config: Config, node: Node, pool: StoragePool) -> Ask[list[Examined]]:
    """Ask a node whether a pool's disks could be used there."""
    where = place(config, config.group(node.group), pool)
    return Ask(node.uuid, ExamineStorage(places=(where,)))


def ask(
    config: Config, pool: StoragePool, groups: Iterable[NodeGroup]
) -> Iterator[Question]:
    """Ask what :func:`check` and :func:`check_driver` must know."""
    for group in groups:
        for node in online(config, group):
            yield examined_on(config, node, pool)
    if pool.provider:
        for node in config.hosts():
            yield providers_on(node.uuid)


def check(view: View, pool: StoragePool, group: NodeGroup) -> None:
    """Raise unless every node of a group proved that a pool works there.

    Raises
    ------
    WrongState
        If one lacks something, or there is none.
    MoorageError
        If one gives no answer: it proved nothing.
    """
    nodes = online(view.config, group)
    if not nodes:
        raise WrongState(
            f"no node of node group {group.name} is online: nobody can tell whether "
            f"storage pool '{pool.name}' works there",
            hint=f"gnt-node list -o name,offline,group 'group == \"{group.name}\"'",
        )
    for node in nodes:
        (found,) = view.answer(examined_on(view.config, node, pool)) or (None,)
        if found and found.problem:
            raise WrongState(
                f"storage pool '{pool.name}' does not work on node {node.name} of node "
                f"group {group.name}: {found.problem}",
                hint="gnt-storage diagnose",
                node=node.name,
                pool=pool.name,
            )


def check_driver(view: View, pool: StoragePool, *, force: bool) -> None:
    """Raise unless some node has a valid provider, and it takes the pool's parameters.

    Parameters
    ----------
    force
        Whether parameters that it does not list are accepted.

    Raises
    ------
    NotFound
        If no node has it.
    BadInput
        If it has no such parameter.
    """
    if pool.provider is None:
        return
    nodes = [one for one in view.config.hosts() if view.reached(providers_on(one.uuid))]
    found = [provider_called(pool.provider, providers(view, node)) for node in nodes]
    valid = [one for one in found if one and one.valid]
    if not valid:
        raise NotFound(
            f"no node has a valid ExtStorage provider '{pool.provider}'",
            hint="gnt-storage diagnose",
            provider=pool.provider,
        )
    for one in valid:
        check_parameters(pool.params, one, force=force)
