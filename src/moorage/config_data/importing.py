# SPDX-License-Identifier: BSD-2-Clause
"""Ganeti's configuration as objects: the reverse of an export.

The cluster that it comes into gives what a file cannot: keys of nodes, where each is
reached, who leads.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from msgspec import Struct, ValidationError, convert
from msgspec.structs import replace

from moorage import backend
from moorage.errors import BadInput, MoorageError
from moorage.model import (
    Change,
    Cluster,
    Config,
    Disk,
    Entity,
    Instance,
    Network,
    Node,
    NodeGroup,
    StoragePool,
    ipolicy,
    nicparams,
    pair_of,
)
from moorage.model.apply import assembled
from moorage.model.master_address import MasterAddress
from moorage.model.misfit import misfit
from moorage.ops.cluster import defaults
from moorage.ops.volumes.disk_words import LARGEST_DISK

from . import importing_settings as settings
from .document import Document, Part
from .export import GIVEN, OF_DISKS, of_ganeti, written
from .foreign import PLACES, Foreign, noted
from .importing_names import Names, fit_name, fit_tags
from .importing_networks import check_card, network
from .upgrade import UNFIT

E = TypeVar("E", bound=Struct)
Beside = Mapping[str, Mapping[str, Any]]
"""The file beside an export: objects by kind and uuid."""

_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,254}")
"""Uuids and names of machines, as widely as Ganeti has them."""
_PORTS = 1 << 16
_ADMIN_STATES = ("up", "down", "offline")
_STATES = ("primary_ip", "secondary_ip", "offline", "drained", "master_candidate")
"""What is so here, whatever the file says of a node: no word of the file's goes out."""
_OF_THE_NODE = (*_STATES, "port", "pins", "master_certs", "led_with")
"""What a node that joined has of its own: its keys, its roles, where it is reached."""
_OF_THE_CLUSTER = (
    *("former_masters", "leads", "watcher_pause", "job_retention", "ssconf"),
)
"""What the cluster that it comes into has of its own."""


class _Given(Struct):
    """What only an export reads of a cluster: see `GIVEN`."""

    master_ip: str = ""
    master_netdev: str = ""
    master_netmask: int = 0
    highest_used_port: int = 0
    tcpudp_port_pool: list[int] = []


def expected(document: Document) -> Config:
    """Return the cluster that a file would come into, had all of its nodes joined.

    Raises
    ------
    BadInput
        If it has none.
    """
    if not document["nodes"]:
        raise BadInput("it is no configuration of a cluster: it has no nodes")
    group = NodeGroup(uuid="-group", name="default")
    nodes = [
        Node(
            uuid=f"-{uuid}",
            name=part["name"],
            primary_ip=part.get("primary_ip") or "",
            secondary_ip=part.get("secondary_ip") or "",
            group=group.uuid,
        )
        for uuid, part in document["nodes"].items()
    ]
    lead = document["cluster"].get("master_node")
    own = [one.uuid for one in nodes if one.uuid == f"-{lead}"] or [nodes[0].uuid]
    cluster = Cluster(uuid="-cluster", cluster_name="expected", master_node=own[0])
    return assembled([group, *nodes, cluster])[0]


def joined(here: Config) -> dict[str, Node]:
    """Return the nodes that a cluster has, by name."""
    return {one.name: one for one in here.all(Node)}


class Imported:
    """A configuration as objects.

    Attributes
    ----------
    config
        All of it, as it would be here; references may dangle.
    wrong
        What does not fit, in sentences: with one of them nothing can be stored.
    aside
        What has no effect here and goes out again, as it is: whose it is, and why.
    """

    def __init__(
        self, config: Config, wrong: list[str], aside: list[tuple[str, str]]
    ) -> None:
        self.config = config
        self.wrong = wrong
        self.aside = aside

    def change(self, here: Config) -> Change:
        """Return the change that makes it the whole state, where `here` is now."""
        gone = [one for kind in _ORDER for one in here.all(kind)]
        made = [one for kind in reversed(_ORDER[1:]) for one in self.config.all(kind)]
        return Change((self.config.cluster, *made), tuple(gone))


_ORDER = (Cluster, Instance, Disk, StoragePool, Node, Network, NodeGroup)


def imported(
    document: Document, here: Config, new_uuid: Callable[[], str], beside: Beside
) -> Imported:
    """Return the objects that a document of the newest version describes.

    Parameters
    ----------
    here
        The cluster that they come into.
    new_uuid
        Makes one for each network card that has none.
    beside
        What an export kept beside its file; empty for none.
    """
    reading = _Reading(document, here, new_uuid, beside)
    found = list(reading.all())
    config, broken = assembled(found)
    wrong = [*reading.wrong, *(error.message for error in broken)]
    if not wrong:
        try:
            config, _ = assembled(_with_foreign(document, config))
        except (*UNFIT, MoorageError) as error:
            told = f"{type(error).__name__}: {error}"
            wrong.append(f"no Ganeti has such a configuration ({told})")
    return Imported(config, wrong, reading.aside)


class _Reading:
    """One pass over a document."""

    def __init__(
        self,
        document: Document,
        here: Config,
        new_uuid: Callable[[], str],
        beside: Beside,
    ) -> None:
        self.wrong: list[str] = []
        self.aside: list[tuple[str, str]] = []
        self._names = Names(document)
        self._document = document
        self._here = here
        self._new_uuid = new_uuid
        self._beside = beside
        self._homes = {
            uuid: instance["primary_node"]
            for instance in document["instances"].values()
            for uuid in instance["disks"]
        }

    def all(self) -> Iterator[Entity]:
        """Yield every object; what none can be made of is noted as wrong."""
        readers: Mapping[str, Callable[[Part], Entity]] = {
            "nodegroups": self._group,
            "networks": lambda one: network(_made(Network, _theirs(Network, one)), one),
            "nodes": self._node,
            "disks": self._disk,
            "instances": self._instance,
        }
        for place, reader in readers.items():
            for uuid, part in self._document[place].items():
                yield from self._read(place, uuid, part, reader)
        cluster = self._document["cluster"]
        yield from self._read(
            "cluster", cluster.get("uuid", ""), cluster, self._cluster
        )
        for uuid, part in self._beside.get("pools", {}).items():
            yield from self._read(
                "storage pool", uuid, dict(part), lambda one: _made(StoragePool, one)
            )

    def _read(
        self, place: str, uuid: str, part: Part, reader: Callable[[Part], Entity]
    ) -> Iterator[Entity]:
        word = f"{place.removesuffix('s')} {part.get('name') or uuid}"
        try:
            made = reader(part)
        except ValidationError as error:
            self.wrong.append(f"{word}: {misfit(error)}")
        except MoorageError as error:
            self.wrong.append(f"{word}: {error.message}")
        except UNFIT as error:
            told = f"{type(error).__name__}: {error}"
            self.wrong.append(f"{word} is as none of Ganeti's ({told})")
        else:
            try:
                tags, why = fit_tags(made.tags)
                self._leave(word, why)
                made = replace(made, tags=tags)
            except BadInput as error:
                self.wrong.append(f"{word}: {error.message}")
            if made.uuid != uuid:
                self.wrong.append(
                    f"{word} has the uuid {made.uuid}, and the key {uuid}"
                )
            odd = [one for one in _words(made) if not _WORD.fullmatch(one)]
            odd += [one for one in _names(made) if not one.isprintable()]
            self.wrong += [f"{word}: nothing can be called '{one[:80]}'" for one in odd]
            yield made

    def _leave(self, word: str, why: str) -> None:
        if why:
            self.aside.append((word, why))

    def _of_nodes(self, word: str, part: Part) -> Part:
        """Return a part with the node parameters that it can have here."""
        fields, told = settings.of_nodes(part)
        self.aside += [(word, one) for one in told]
        return {**part, **fields}

    def _group(self, part: Part) -> NodeGroup:
        return _group(self._of_nodes(f"node group {part.get('name')}", part))

    def _node(self, part: Part) -> Node:
        part = self._of_nodes(f"node {part.get('name')}", part)
        node = _made(Node, _theirs(Node, part))
        own = joined(self._here).get(node.name)
        if own is None:
            return replace(node, offline=True, master_candidate=False, drained=False)
        return replace(node, **{name: getattr(own, name) for name in _OF_THE_NODE})

    def _disk(self, part: Part) -> Disk:
        uuid = part.get("uuid", "")
        more = dict(self._beside.get("disks", {}).get(uuid, {}))
        if others := more.keys() - {*OF_DISKS}:
            told = ", ".join(sorted(others))
            raise BadInput(f"the file beside tells its {told}, as no export does")
        home = self._homes.get(uuid)
        if home in self._document["nodes"]:
            more.setdefault("last_node", home)
            more.setdefault("group", self._document["nodes"][home].get("group"))
        elif len(self._document["nodegroups"]) == 1:
            more.setdefault("group", next(iter(self._document["nodegroups"])))
        children = [
            {"uuid": f"{uuid}-{number}", **_theirs(Disk, child)}
            for number, child in enumerate(part.get("children") or ())
        ]
        called = self._names.called(part, by_uuid=bool(more.get("by_uuid")))
        if "name" in called:
            told = f"another disk is named '{part['name']}', too: it comes in without"
            self.aside.append((f"disk {uuid}", f"{told} a name"))
        words = {"children": children, **called}
        disk = _made(Disk, {**_theirs(Disk, part), **more, **words})
        if not (disk.volumes and all(disk.volumes)):
            raise BadInput("it has no volume")
        for one in (disk, *disk.children):
            if not 0 <= one.size <= LARGEST_DISK:
                raise BadInput(f"a disk has 0 to {LARGEST_DISK} MiB, not {one.size}")
        pair_of(disk)
        return disk

    def _instance(self, part: Part) -> Instance:
        nics = part.get("nics") or []
        named = [{**nic, "uuid": nic.get("uuid") or self._new_uuid()} for nic in nics]
        own = self._beside.get("hvparams", {}).get(part.get("uuid", ""), {})
        given = {**(part.get("hvparams") or {}), **own}
        backend.check(part.get("beparams") or {})
        words = {"nics": named, "hvparams": given}
        instance = _made(Instance, {**_theirs(Instance, part), **words})
        if instance.admin_state not in _ADMIN_STATES:
            told = ", ".join(_ADMIN_STATES)
            raise BadInput(f"a state is {told}, not {instance.admin_state[:80]!r}")
        if not 0 <= (instance.network_port or 0) < _PORTS:
            raise BadInput(f"no port has the number {instance.network_port}")
        cards = []
        for nic in instance.nics:
            check_card(nic)
            name, why = fit_name(nic.name)
            self._leave(f"instance {instance.name}", why)
            cards.append(replace(nic, name=name))
        return replace(instance, nics=tuple(cards))

    def _cluster(self, part: Part) -> Cluster:
        here = self._here.cluster
        own = self._beside.get("hvparams", {}).get(part.get("uuid", ""), {})
        presets, told = settings.of_cluster(part, here)
        self.aside += [("cluster", one) for one in told]
        for hypervisor, params in own.items():
            known = presets["hvparams"].get(hypervisor, {})
            presets["hvparams"][hypervisor] = {**known, **params}
        found = _made(Cluster, {**_theirs(Cluster, part), **presets})
        ipolicy.changed({}, found.ipolicy)
        for given in found.nicparams.values():
            nicparams.checked(given)
        _made(_Given, part)
        for profile, params in found.beparams.items():
            defaults.check_beparams(profile, params)
        kept = {name: getattr(here, name) for name in _OF_THE_CLUSTER}
        lead = self._here.node(here.master_node).name
        nodes = self._document["nodes"].values()
        uuids = [one["uuid"] for one in nodes if one["name"] == lead]
        if not uuids:
            raise BadInput(f"the master's node {lead} is not in the file")
        return replace(found, **kept, master_node=uuids[0])


def _words(made: Entity) -> Iterator[str]:
    """Yield what files of nodes may be called after an object."""
    yield made.uuid
    if isinstance(made, Node | Instance):
        yield made.name
    if isinstance(made, Cluster):
        yield made.cluster_name
    if isinstance(made, Instance):
        yield from (nic.uuid for nic in made.nics)


def _names(made: Entity) -> Iterator[str]:
    """Yield what lists of one name a line may call an object."""
    if isinstance(made, NodeGroup | Network | Disk | StoragePool):
        yield made.name or ""
    elif isinstance(made, Instance):
        yield made.os


def _theirs(cls: type[Struct], part: Part) -> Part:
    """Return what Ganeti says of an object; our own words count for nothing."""
    return {one: part[one] for one in of_ganeti(cls) if part.get(one) is not None}


def _made(cls: type[E], part: Part) -> E:
    known = {
        one: part[one] for one in cls.__struct_fields__ if part.get(one) is not None
    }
    return convert(known, cls)


def _group(part: Part) -> NodeGroup:
    group = _made(NodeGroup, _theirs(NodeGroup, part))
    for given in group.networks.values():
        nicparams.checked(given)
    ipolicy.changed({}, group.ipolicy, of_group=True)
    return group


def _with_foreign(document: Document, config: Config) -> Iterator[Entity]:
    """Yield every object with what the file says of it otherwise than we would."""
    theirs = document["cluster"]
    address = MasterAddress(
        theirs.get("master_ip", ""),
        theirs.get("master_netdev", ""),
        theirs.get("master_netmask", 32),
    )
    ours = written(config, address)
    for place, kind in PLACES.items():
        but = frozenset(_STATES) if kind is Node else frozenset[str]()
        for one in config.all(kind):
            its = document[place][one.uuid]
            yield replace(one, foreign=noted(ours[place][one.uuid], its, but))
    yield from config.all(StoragePool)
    cluster = config.cluster
    foreign = noted(ours["cluster"], theirs, frozenset({"master_node"})) or {}
    given = {name: theirs.get(name) for name in GIVEN}
    foreign |= {
        f"/{name}": (None, one) for name, one in given.items() if one is not None
    }
    yield replace(
        cluster, foreign=foreign, foreign_document=_of_document(document, ours)
    )


def _of_document(document: Document, ours: Document) -> Foreign | None:
    but = frozenset({*PLACES, "cluster", "version", "serial_no"})
    return noted(ours, document, but)
