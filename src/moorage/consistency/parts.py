# SPDX-License-Identifier: BSD-2-Clause
"""What a check of a configuration reads of each object, and from where."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct, ValidationError, convert, field

from moorage.disk_templates import FACTS, Mirror
from moorage.model.misfit import misfit

CONFIG = "ECLUSTERCFG"
"""Ganeti's code of what is wrong with a configuration."""
NO_GROUP, NO_NODE = "ECLUSTERDANGLINGNODES", "ECLUSTERDANGLINGINST"
CODES = {
    CONFIG: "what does not fit together in a configuration",
    NO_GROUP: "nodes whose group is not there",
    NO_NODE: "instances whose node is not there",
}
"""All of them, each with what it says."""


class Complaint(Struct, frozen=True):
    """What is wrong with an object of a configuration.

    Attributes
    ----------
    kind
        ``cluster``, ``group``, ``network``, ``node``, ``instance`` or ``disk``.
    name
        Its name, or its uuid where it has none; empty for the cluster.
    message
        A sentence, in the words that Ganeti's own check has for it.
    code
        Ganeti's, as ``gnt-cluster verify --error-codes`` prints it.
    """

    kind: str
    name: str
    message: str
    code: str = CONFIG

    @property
    def object(self) -> str:
        """Kind and name: ``disk data1``."""
        return f"{self.kind} {self.name}".rstrip()


Complaints = Iterator[Complaint]
Params = dict[str, Any]
Grouped = dict[str, Params]


class Cluster(Struct):
    """Settings of the cluster; what is not there is as Ganeti has it by default."""

    master_node: str = ""
    master_ip: str = ""
    candidate_pool_size: int | None = None
    enabled_hypervisors: list[str] = []
    enabled_disk_templates: list[str] = []
    hvparams: Grouped = {}
    os_hvp: dict[str, Grouped] = {}
    beparams: Grouped = {}
    nicparams: Grouped = {}
    diskparams: Grouped = {}
    ndparams: Params = {}
    ipolicy: Params = {}
    highest_used_port: int | None = None
    tcpudp_port_pool: list[int] = []


class Named(Struct):
    """What has a name."""

    uuid: str
    name: str


class Group(Named):
    """A node group."""

    ndparams: Params = {}
    ipolicy: Params = {}


class Node(Named):
    """A node."""

    group: str = ""
    primary_ip: str = ""
    secondary_ip: str = ""
    master_candidate: bool = False
    drained: bool = False
    offline: bool = False
    master_capable: bool = True
    ndparams: Params = {}


class Nic(Struct):
    """A network card."""

    mac: str = ""
    ip: str | None = None
    network: str | None = None
    nicparams: Params = {}


class Instance(Named):
    """An instance."""

    primary_node: str = ""
    disks: list[str] = []
    nics: list[Nic] = []
    hypervisor: str = ""
    hvparams: Params = {}
    beparams: Params = {}
    network_port: int | None = None


class Connection(NamedTuple):
    """A port, and the number of the device on each node."""

    port: int
    minors: tuple[int, int]


def _is_connection(logical_id: Sequence[Any]) -> bool:
    """Whether it has two nodes, a port, two minors and a secret."""
    kinds = (str, str, int, int, int, str)
    return tuple(map(type, logical_id)) == kinds


class Disk(Struct):
    """A disk."""

    dev_type: str
    uuid: str = ""
    name: str | None = None
    mode: str = "rw"
    iv_name: str = ""
    logical_id: list[Any] = []
    children: list["Disk"] = []

    @property
    def label(self) -> str:
        """The name that a person gave it, or else the uuid."""
        return self.name or self.uuid

    @property
    def is_mirror(self) -> bool:
        """Whether it has a copy on each of two nodes."""
        facts = FACTS.get(self.dev_type)
        return facts is not None and facts.mirror is Mirror.INTERNAL

    @property
    def ends(self) -> list[str]:
        """The two nodes of a mirror; of any other disk none."""
        return [str(one) for one in self.logical_id[:2]] if self.is_mirror else []

    @property
    def mirror(self) -> Connection | None:
        """How the ends of a mirror are connected; None if nothing whole is noted."""
        if not self.is_mirror or not _is_connection(self.logical_id):
            return None
        _, _, port, one, other, _ = self.logical_id
        return Connection(port, (one, other))


class Parts(Struct):
    """The objects of a configuration, by the keys that they stand under."""

    cluster: Cluster = field(default_factory=Cluster)
    nodegroups: dict[str, Group] = {}
    networks: dict[str, Named] = {}
    nodes: dict[str, Node] = {}
    instances: dict[str, Instance] = {}
    disks: dict[str, Disk] = {}


WORDS = {
    "nodegroups": "group",
    "networks": "network",
    "nodes": "node",
    "instances": "instance",
    "disks": "disk",
}
_TYPES: Mapping[str, type[Struct]] = {
    "nodegroups": Group,
    "networks": Named,
    "nodes": Node,
    "instances": Instance,
    "disks": Disk,
}
T = TypeVar("T", bound=Struct)


def parts_of(document: Mapping[str, Any], wrong: list[Complaint]) -> Parts:
    """Return the objects of a document; complain of those that are of no use."""
    found = Parts()
    cluster = _part(document.get("cluster"), Cluster)
    if isinstance(cluster, str):
        wrong.append(Complaint("cluster", "", f"cluster: {cluster}"))
    else:
        found.cluster = cluster
    for place, word in WORDS.items():
        parts = document.get(place) or {}
        if not isinstance(parts, Mapping):
            wrong.append(Complaint("cluster", "", f"{place} is no dictionary"))
            continue
        for key, one in parts.items():
            part = _part(one, _TYPES[place])
            if isinstance(part, str):
                name = one.get("name") if isinstance(one, Mapping) else None
                told = name if isinstance(name, str) and name else str(key)
                wrong.append(Complaint(word, told, f"{word} '{told}': {part}"))
            else:
                getattr(found, place)[key] = part
    return found


def _part(value: Any, kind: type[T]) -> T | str:  # noqa: ANN401 - of a file
    """Return an object, or why it is none; what is null is not there."""
    if not isinstance(value, Mapping):
        return "it is no dictionary"
    try:
        return convert({k: one for k, one in value.items() if one is not None}, kind)
    except ValidationError as error:
        return misfit(error)
    except RecursionError:
        return "it is nested too deep"


def default(grouped: Mapping[str, Params]) -> Params:
    """Return the parameters that count where there are no others."""
    return grouped.get("default") or {}
