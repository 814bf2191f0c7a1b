# SPDX-License-Identifier: BSD-2-Clause
"""New disks: from the words of a request to a disk that has an identity.

A disk's volume is named once, here, and keeps the name whatever happens to its owner,
its slot or its own name.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

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
    StoragePool,
    Volume,
)
from moorage.model.objects import REUSE, reuses
from moorage.ops.asking.node_tasks import diskparams, providers_on, settings
from moorage.protocol import Listed, ListVolumes
from moorage.storage import Can, Mirrored, Reach, Template, VolumeRequest
from moorage.storage.templates import template_named
from moorage.storage.validation import flag
from moorage.units import Mib

from . import exclusive_storage, identity, pairs, pools
from .directories import provided_place
from .disk_access import online
from .disk_names import check_disk_name, hold_names
from .units import Named, occupied, unit_named

KEYS = frozenset(
    {"size", "mode", "name", "adopt", "epoch", "spindles", "dev_type", "pool"}
)
"""What Ganeti mixes with the parameters of a template, in the description of a disk."""
MODES = ("rw", "ro")
LAST_EPOCH = 1 << 62
"""More than there will be attachments: a script's arithmetic takes it."""
LARGEST_DISK = Mib(16 * 1024 * 1024 * 1024)
"""16 PiB: more is a slip of the hand."""


class DiskSpec(Struct, frozen=True, kw_only=True):
    """A disk as somebody wants it.

    Attributes
    ----------
    template
        Name of the disk template.
    size
        In MiB; None when it comes from what is adopted.
    adopt
        A volume that exists.
    reuse
        Whether the volume exists, and the provider finds it by the disk's name or its
        parameters: Ganeti's ``reuse_data=True``.
    epoch
        That an adopted disk starts with, for its storage may have seen others.
    params
        Parameters of the template or the provider, `provider` and `access` included.
    force
        Whether parameters that the provider does not list are accepted.
    folder
        For image files: a directory below the cluster's, relative; empty for none.
    pool
        The storage pool that it is made in; None for none.
    spindles
        How many physical volumes it has for itself; None without exclusive storage.
    """

    template: str
    size: Mib | None = None
    mode: str = "rw"
    name: str | None = None
    adopt: str | None = None
    reuse: bool = False
    epoch: int = 0
    params: dict[str, Any] = field(default_factory=dict)
    force: bool = False
    folder: str = ""
    tags: tuple[str, ...] = ()
    pool: StoragePool | None = None
    spindles: int | None = None

    @property
    def kind(self) -> type[Template]:
        """The template."""
        return template_named(self.template)

    @property
    def adopts(self) -> bool:
        """Whether its volume is there, and not made for it."""
        return bool(self.adopt) or self.reuse

    @property
    def driver(self) -> str:
        """What makes it: its provider, or else its template."""
        return str(self.params.get("provider") or self.template)

    @property
    def at_path(self) -> bool:
        """Whether it adopts what nodes see at a path, before it is attached."""
        return bool(self.adopt) and not self.kind.capabilities.provider


def wish(
    config: Config, given: Mapping[str, Any], default: str | None = None
) -> DiskSpec:
    """Return the disk that ``{size: 1024, provider: nas, …}`` describes.

    It is of the template `default`, where it names neither one nor a storage pool.
    Raise what :func:`specified` does.
    """
    return specified(
        config,
        given,
        template=given.get("dev_type") or (None if given.get("pool") else default),
        params={key: value for key, value in given.items() if key not in KEYS},
    )


def specified(
    config: Config,
    given: Mapping[str, Any],
    *,
    template: object,
    params: Mapping[str, Any],
) -> DiskSpec:
    """Return the disk that some fields and some parameters describe.

    Parameters
    ----------
    given
        ``pool`` (name or uuid), ``size``, ``mode``, ``name``, ``adopt``, ``epoch``,
        ``spindles``.
    template
        Its name; None if the storage pool says it.
    params
        Those of the template or the provider; None is as if it were not given.

    Raises
    ------
    BadInput
        If there is no template, a value is off, or the pool is of another kind.
    NotFound
        If there is no such storage pool.
    """
    pool = config.pool(str(given["pool"])) if given.get("pool") else None
    if pool:
        template = pools.chosen_template(pool, template)
    if not template:
        raise BadInput(
            "the disk names no template",
            hint="gnt-disk: -t sharedfile, -t ext -p NAME, or --pool NAME; --disk: "
            "dev_type=file, dev_type=ext,provider=NAME, or pool=NAME",
        )
    own = {key: value for key, value in params.items() if value is not None}
    adopt, kind = given.get("adopt"), template_named(str(template))
    if adopt:
        adopt = kind.adoptable(str(adopt))
    reuse = kind.capabilities.provider and _reused(own)
    if reuse:  # whether the provider is told, its list of parameters says
        own = unused(own)
    return DiskSpec(
        template=str(template),
        size=checked_size(given.get("size")),
        mode=checked_mode(given.get("mode", "rw")),
        name=checked_name(given.get("name")),
        adopt=adopt or None,
        reuse=reuse,
        epoch=checked_epoch(given.get("epoch"), adopts=bool(adopt) or reuse),
        spindles=exclusive_storage.checked_spindles(given.get("spindles")),
        params=pools.completed(pool, own) if pool else own,
        pool=pool,
    )


def _reused(params: Mapping[str, Any]) -> bool:
    """Whether parameters say that the volume is there; raise `BadInput` for neither."""
    for name, value in params.items():
        if name.lower() == REUSE:
            flag(name, value)
    return reuses(params)


def unused(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters without the one that says whether the volume is there."""
    return {name: one for name, one in params.items() if name.lower() != REUSE}


def anew(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a disk for another one, whose volume is made for it."""
    return unused(params) if reuses(params) else params


def checked_epoch(value: object, *, adopts: bool) -> int:
    """Return the epoch that an adopted disk starts with; 0 where none is said.

    Raises
    ------
    BadInput
        If it is no epoch, or the disk is a new one, whose storage has seen none.
    """
    if value is None or value == 0:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadInput(f"an epoch is a whole number from 0 on, not '{value}'")
    if value > LAST_EPOCH:
        raise BadInput(f"an epoch is at most {LAST_EPOCH}, not {value}")
    if not adopts:
        raise BadInput("a new disk starts with epoch 0: only an adopted one has others")
    return value


def named_params(params: Mapping[str, Any], **fields: str | None) -> dict[str, Any]:
    """Return the parameters of a request, some of which may be fields of it, too.

    Raises
    ------
    BadInput
        If a field says something else.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    for name in given.keys() & params.keys():
        if params[name] != given[name]:
            raise BadInput(
                f"the disk's {name} is given twice: '{given[name]}' and "
                f"'{params[name]}'"
            )
    return {**params, **given}


def shared_by(disks: Collection[Disk]) -> dict[str, Any]:
    """Return template, provider and storage pool that disks share; empty without any.

    A new disk of their instance takes them, where its description names none.
    """
    templates = {disk.dev_type for disk in disks}
    if len(templates) != 1:
        return {}
    given = {disk.params.get("provider") for disk in disks} - {None}
    shared = {"provider": given.pop()} if len(given) == 1 else {}
    places = {disk.pool for disk in disks}
    if len(places) == 1 and None not in places:
        shared["pool"] = places.pop()
    return {"dev_type": templates.pop(), **shared}


def checked_size(value: object) -> Mib | None:
    """Return a size in MiB, or raise `BadInput` if no disk can have it."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(f"a disk's size is a whole number of MiB, not '{value}'")
    if not 0 < value <= LARGEST_DISK:
        raise BadInput(f"a disk has between 1 and {LARGEST_DISK} MiB, not {value}")
    return Mib(value)


def checked_mode(value: object) -> str:
    """Return a mode, or raise `BadInput` if it is none of :data:`MODES`."""
    if value not in MODES:
        raise BadInput(f"a disk's mode is rw or ro, not '{value}'")
    return str(value)


def checked_name(value: object) -> str | None:
    """Return a name; None for none, in any of its spellings."""
    if value is None or value == "none":
        return None
    return check_disk_name(str(value))


def hold(wishes: Iterable[DiskSpec]) -> Iterator[Lock]:
    """Hold what two jobs must not give to two disks, and share their storage pools."""
    for wanted in wishes:
        yield from pools.hold([wanted.pool.uuid if wanted.pool else None])
        yield from hold_names(wanted.name)
        if wanted.adopts:
            yield identity.ADOPTION


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


def bear(
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
    born = VolumeRequest(
        unique=unique,
        index=index,
        instance=instance,
        folder=wanted.folder,
        settings=settings(view.config.cluster, wanted.template),
        params=params | adopted(wanted),
        volume=pools.volume_name(pool, unique, instance, index) if pool else "",
        pair=pair,
    )
    local = kind.capabilities.reach is not Reach.GROUP
    size = born_size(view, wanted, node)
    return Disk(
        uuid=view.fresh(),
        dev_type=wanted.template,
        logical_id=kind.logical_id(born),
        children=kind.children(born, size) if issubclass(kind, Mirrored) else (),
        size=size,
        mode=wanted.mode,
        name=wanted.name,
        nodes=born.pair.nodes if born.pair else (node.uuid,) if local else (),
        params=params,
        pool=pool.uuid if pool else None,
        spindles=wanted.spindles,
        group=node.group,
        last_node=node.uuid,
        identity=_identity(view, wanted, node),
        epoch=wanted.epoch,
        adopted=wanted.adopts,
        ctime=view.now,
        mtime=view.now,
        tags=wanted.tags,
    )


def bear_all(
    view: View, wishes: Iterable[DiskSpec], node: Node, peer: Node | None, instance: str
) -> list[Disk]:
    """Return new disks of an instance by their slots; each knows of those before it.

    The instance runs on `node`; `peer` keeps second copies, if any disk has them.
    """
    made: list[Disk] = []
    for index, wanted in enumerate(wishes):
        pair = pairs.wanted(view, wanted.template, node, peer, made)
        disk = bear(view, wanted, node, index=index, instance=instance, pair=pair)
        made.append(disk)
    return made


def adopted(wanted: DiskSpec) -> dict[str, Any]:
    """Return what says which volume is adopted; nothing if none is."""
    return {"adopt": wanted.adopt} if wanted.adopt else {}


def parameters(config: Config, wanted: DiskSpec, group: NodeGroup) -> dict[str, Any]:
    """Return the parameters of a new disk in a group: all that hold, its own first."""
    preset = unused(wanted.pool.params) if wanted.pool else {}
    return diskparams(config, wanted.template, group) | preset | wanted.params


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
    mirrored = [one for one in wishes if pairs.is_mirrored(one.template)]
    for place, made in ((node, wishes), (peer, mirrored)):
        found = taken(view, made, place) if place else ()
        if place and found:
            yield Claim(node=place.uuid, rooms=found, spindles=spindles(made))
