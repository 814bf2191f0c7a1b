# SPDX-License-Identifier: BSD-2-Clause
"""New disks: from what is wanted to a disk that has an identity.

A disk's volume is named once, here, and keeps the name whatever happens to its owner,
its slot or its own name.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from moorage.errors import BadInput
from moorage.jobs import Ask, Lock, Question, View
from moorage.model import (
    Claim,
    Config,
    Device,
    Disk,
    Node,
    NodeGroup,
    Pair,
    Volume,
)
from moorage.ops.asking.disk_presets import diskparams
from moorage.ops.asking.node_tasks import providers_on, settings
from moorage.protocol import Listed, ListVolumes
from moorage.storage import Can, Mirrored, VolumeRequest
from moorage.storage.provider import provider_called
from moorage.units import Mib

from . import identity, pairs, pools
from .directories import provided_place
from .disk_access import online
from .disk_names import hold_name, may_be_sole, note
from .disk_words import DiskSpec, unused
from .units import Named, occupied, unit_named


def hold(view: View, wishes: Collection[DiskSpec], *, owned: bool = True) -> list[Lock]:
    """Hold what two jobs must not give to two disks, and share their storage pools.

    Parameters
    ----------
    owned
        Whether an instance, which is held, is to have them.
    """
    shared = pools.hold(one.pool.uuid for one in wishes if one.pool)
    adoption = [identity.ADOPTION] if any(one.adopts for one in wishes) else []
    names = (
        lock
        for one in wishes
        for lock in hold_name(one.name, sole=_may_be_sole(view, one), owned=owned)
    )
    return [*shared, *names, *adoption]


def _may_be_sole(view: View, wanted: DiskSpec) -> bool:
    """Whether the storage of a disk may know it by its name."""
    provided = wanted.kind.capabilities.provider
    return may_be_sole(view, wanted.driver, provided=provided)


def ask(config: Config, wanted: DiskSpec, group: NodeGroup) -> Iterator[Question]:
    """Ask the nodes of a group what :func:`check` must know."""
    capabilities = wanted.kind.capabilities
    nodes = online(config, group)
    if wanted.at_path:
        yield from identity.ask(config, nodes, device(config, wanted, group))
    for node in nodes:
        if capabilities.provider:
            yield providers_on(node.uuid)
            if wanted.adopt:
                yield _listing(config, wanted, node)


def _listing(config: Config, wanted: DiskSpec, node: Node) -> Ask[list[Listed]]:
    """Return what a node is asked of a provider whose volume is adopted."""
    given = parameters(config, wanted, config.group(node.group))
    place = provided_place(wanted.template, wanted.kind.parameters(given))
    return Ask(node.uuid, ListVolumes(places=(place,)))


def listed(view: View, wanted: DiskSpec, node: Node) -> list[Volume] | None:
    """Return what a node sees of a volume that is adopted: itself, or nothing.

    None where its provider does not tell which volumes there are.
    """
    told = view.told(_listing(view.config, wanted, node))
    if not told or told[0].problem:
        return None
    return [one for one in told[0].volumes if str(one.logical_id[-1]) == wanted.adopt]


def new_disk(
    view: View,
    wanted: DiskSpec,
    node: Node,
    *,
    index: int = 0,
    instance: str = "",
    pair: Pair | None = None,
) -> Disk:
    """Return the new disk, with the identity that it keeps for life.

    Parameters
    ----------
    node
        Where it is made, or where its instance runs.
    index, instance
        The slot and the instance it is made for; 0 and empty for nobody.
    pair
        Of a mirrored disk, who keeps its copies.
    """
    kind, pool, unique = wanted.kind, wanted.pool, view.fresh()
    group = view.config.group(node.group)
    params = kind.parameters(parameters(view.config, wanted, group))
    request = VolumeRequest(
        unique=unique,
        index=index,
        instance=instance,
        folder=wanted.folder,
        settings=settings(view.config.cluster, wanted.template),
        params=params | adopted(wanted),
        volume=pools.volume_name(pool, unique, instance, index) if pool else "",
        pair=pair,
    )
    size = born_size(view, wanted, node)
    return Disk(
        uuid=view.fresh(),
        dev_type=wanted.template,
        logical_id=kind.logical_id(request),
        children=kind.children(request, size) if issubclass(kind, Mirrored) else (),
        size=size,
        mode=wanted.mode,
        name=wanted.name,
        nodes=request.pair.nodes
        if request.pair
        else ()
        if wanted.roams
        else (node.uuid,),
        params=params,
        pool=pool.uuid if pool else None,
        spindles=wanted.spindles,
        group=node.group,
        last_node=node.uuid,
        identity=_identity(view, wanted, node),
        epoch=wanted.epoch,
        adopted=wanted.adopts,
        by_uuid=_is_by_uuid(view, wanted, node),
        ctime=view.now,
        mtime=view.now,
        tags=wanted.tags,
    )


def _is_by_uuid(view: View, wanted: DiskSpec, node: Node) -> bool:
    """Whether a new disk is known by ``VOL_NAME`` alone, as a node says."""
    if not wanted.kind.capabilities.provider:
        return False
    told = view.told(providers_on(node.uuid)) or []
    found = provider_called(wanted.driver, told)
    return found is not None and note(view, found)


def bear_all(
    view: View, wishes: Iterable[DiskSpec], node: Node, peer: Node | None, instance: str
) -> list[Disk]:
    """Return new disks of an instance by their slots; each knows of those before it.

    The instance runs on `node`; `peer` keeps second copies, if any disk has them.
    """
    made: list[Disk] = []
    for index, wanted in enumerate(wishes):
        pair = pairs.wanted(view, wanted, node, peer, made)
        disk = new_disk(view, wanted, node, index=index, instance=instance, pair=pair)
        made.append(disk)
    return made


def adopted(wanted: DiskSpec) -> dict[str, Any]:
    """Return what says which volume is adopted; nothing if none is."""
    return {"adopt": wanted.adopt} if wanted.adopt else {}


def parameters(config: Config, wanted: DiskSpec, group: NodeGroup) -> dict[str, Any]:
    """Return the parameters of a new disk in a group: all that hold, its own first."""
    preset = unused(wanted.pool.params) if wanted.pool else {}
    return diskparams(config.cluster, wanted.template, group) | preset | wanted.params


def unit(config: Config, wanted: DiskSpec, group: NodeGroup) -> Named:
    """Return the storage unit that a new disk in a group will be in."""
    given = parameters(config, wanted, group) | adopted(wanted)
    return unit_named(config, wanted.template, given, wanted.pool)


def units(config: Config, wanted: DiskSpec, group: NodeGroup) -> list[Named]:
    """Return all storage units that a new disk in a group needs on each of its nodes.

    Raise `BadInput` if there must be one, and nobody names it.
    """
    kind = wanted.kind
    given = kind.parameters(parameters(config, wanted, group))
    keys = kind.unit_keys(settings(config.cluster, wanted.template), given)
    return [(kind.capabilities.facts.unit, key) for key in keys]


def _identity(view: View, wanted: DiskSpec, node: Node) -> str | None:
    """Return what names an adopted device; a volume has its name, and nothing else."""
    if not wanted.at_path or Can.CREATE in wanted.kind.capabilities.can:
        return None
    return _found(view, wanted, node).identity


def _found(view: View, wanted: DiskSpec, node: Node) -> Device:
    """Return what a node has of a volume or device that is adopted."""
    path = device(view.config, wanted, view.config.group(node.group))
    return identity.device(view, node, path)


def device(config: Config, wanted: DiskSpec, group: NodeGroup) -> str:
    """Return the path of what is adopted."""
    return wanted.kind.adopted_at(
        str(wanted.adopt),
        settings(config.cluster, wanted.template),
        parameters(config, wanted, group),
    )


def born_size(view: View, wanted: DiskSpec, node: Node) -> Mib:
    """Return how large the new disk is: as wished, or as the adopted device is."""
    if wanted.at_path:
        return _found(view, wanted, node).size
    told = listed(view, wanted, node) if wanted.adopt else None
    if told and told[0].size:
        return told[0].size
    if wanted.size is None:
        raise BadInput(
            f"its storage does not tell how large volume '{wanted.adopt}' is"
            if wanted.adopt
            else "the disk has no size",
            hint="gnt-disk: -s 10G; --disk: size=10G",
        )
    return wanted.size


def taken(
    view: View, wishes: Iterable[DiskSpec], node: Node
) -> tuple[tuple[Named, int], ...]:
    """Return storage unit and MiB of new disks on a node; what is adopted is there."""
    group = view.config.group(node.group)
    return tuple(
        (
            unit(view.config, one, group),
            occupied(one.template, born_size(view, one, node)),
        )
        for one in wishes
        if not one.adopts
    )


def spindles(wishes: Iterable[DiskSpec]) -> int:
    """Return how many physical volumes new disks get; what is adopted has its own."""
    return sum(one.spindles or 0 for one in wishes if not one.adopt)


def rooms(
    view: View, wishes: Collection[DiskSpec], node: Node, peer: Node | None = None
) -> Iterator[Claim]:
    """Claim the room of new disks, and on a peer that of their second copies."""
    mirrored = [one for one in wishes if one.mirrored]
    for place, made in ((node, wishes), (peer, mirrored)):
        found = taken(view, made, place) if place else ()
        if place and found:
            yield Claim(node=place.uuid, rooms=found, spindles=spindles(made))
