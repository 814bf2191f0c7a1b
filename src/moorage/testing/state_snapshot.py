# SPDX-License-Identifier: BSD-2-Clause
"""A picture of a simulated cluster: all that an operation changes as a whole or not.

Two pictures are equal when nobody could tell the clusters apart: the same objects, the
same volumes, attached and running at the same places. Left out is what only rises
(serial numbers, times, epochs), which node did something that others could have done,
and what nobody relies on (notes beside volumes).
"""

import re
from dataclasses import dataclass
from typing import Any

from msgspec import json

from moorage.model import Config, Disk
from moorage.model.change import KIND_OF, encode

from . import contents
from .cluster import SimCluster
from .storage import San
from .stored import EXPORTS_DIR

_STORED = ("volumes", "attached", "mirrors", "data", "held", "exports")
_PARTS = ("objects", "guests", *_STORED)
_DRAWN = re.compile(r"uuid-[1-9]\d{3}")
_LEFT_OUT = ("serial_no", "mtime", "epoch", "last_node")


@dataclass(frozen=True, slots=True)
class Picture:
    """What is there.

    Attributes
    ----------
    objects
        Every object of the configuration by uuid.
    volumes
        Size of each volume and file by name; of logical volumes, by node.
    mirrors
        Role and disk of each mirrored device, by ``node minor``.
    attached
        How each volume is opened, by ``node volume``.
    guests
        State, disks, sizes and volumes of each guest by ``node uuid``.
    data
        What the volume of each disk holds.
    held
        Uuids of the disks that each node's agent holds; with both epochs where it
        holds one by another epoch than the record's.
    exports
        Length of each file of an export by node and path.
    """

    objects: dict[str, Any]
    volumes: dict[str, Any]
    attached: dict[str, Any]
    mirrors: dict[str, Any]
    guests: dict[str, Any]
    data: dict[str, str]
    held: dict[str, list[str]]
    exports: dict[str, int]

    @property
    def known(self) -> set[str]:
        """Names of the volumes that the configuration knows; devices are none."""
        disks = (one for one in self.objects.values() if one["kind"] == "disk")
        parts = (part for disk in disks for part in disk["children"] or (disk,))
        names = (str(part["logical_id"][-1]) for part in parts)
        return {name for name in names if not name.startswith("/dev/")}

    @property
    def orphans(self) -> set[str]:
        """Names of the volumes that nobody knows of."""
        return set(self.volumes) - self.known

    @property
    def missing(self) -> set[str]:
        """Names of the volumes that a disk has lost."""
        return self.known - set(self.volumes)

    @property
    def quarantined(self) -> set[str]:
        """Uuids of the disks in quarantine."""
        return {uuid for uuid, one in self.objects.items() if one.get("quarantine")}

    @property
    def misplaced(self) -> list[str]:
        """Disks that an instance has active and its node does not hold, or the reverse.

        A node that is off holds nothing that anybody could ask for.
        """
        due: dict[str, set[str]] = {name: set() for name in self.held}
        names = {u: o["name"] for u, o in self.objects.items() if o["kind"] == "node"}
        for one in self.objects.values():
            if one["kind"] == "instance" and one["disks_active"]:
                due.get(names[one["primary_node"]], set()).update(one["disks"])
                for uuid in one["disks"]:
                    disk = self.objects[uuid]
                    for node in disk["nodes"] if disk["children"] else ():
                        due.get(names[node], set()).add(uuid)
        held = {(node, disk) for node, found in self.held.items() for disk in found}
        wanted = {(node, disk) for node, found in due.items() for disk in found}
        return sorted(f"{disk} on {node}" for node, disk in held ^ wanted)

    def differences(self, other: "Picture") -> list[str]:
        """Return a line for each thing that is not the same in `other`."""
        return [
            f"{part} {key}: {mine.get(key)} / {theirs.get(key)}"
            for part in _PARTS
            for mine, theirs in [(getattr(self, part), getattr(other, part))]
            for key in sorted(mine.keys() | theirs.keys())
            if mine.get(key) != theirs.get(key)
        ]


def renumbered(seen: Picture) -> Picture:
    """Return a picture in which the uuids that a trial drew follow one another.

    Some may have been drawn for nothing, when a request was decided twice.
    """
    text = json.encode(seen).decode()
    drawn = dict.fromkeys(sorted(_DRAWN.findall(text)))
    names = {uuid: f"uuid-{1000 + at}" for at, uuid in enumerate(drawn)}
    text = _DRAWN.sub(lambda found: names[found[0]], text)
    return json.decode(text, type=Picture)


async def picture(cluster: SimCluster) -> Picture:
    """Return the picture of a cluster where nothing is under way."""
    await cluster.nodes.settle()
    san = cluster.nodes.san
    exported = {key: one for key, one in san.files.items() if EXPORTS_DIR in key}
    others = {key: one for key, one in san.files.items() if key not in exported}
    files = {san.known_as(key): one for key, one in others.items()}
    return Picture(
        objects=_objects(cluster.config),
        volumes={name: one["size"] for name, one in san.volumes.items()}
        | _logical(san)
        | {path: one["size"] for path, one in files.items()},
        attached={key: one["open"] for key, one in san.attached.items()},
        mirrors={
            key: (one["role"], one["two"], one["data"], one["other"])
            for key, one in san.mirrors.items()
        },
        guests={key: _guest(one) for key, one in san.guests.items()},
        data={disk.uuid: _data(san, disk) for disk in cluster.config.all(Disk)},
        held={
            name: await _held(cluster, name)
            for name, node in cluster.nodes.nodes.items()
            if node.powered
        },
        exports={key: one["size"] for key, one in exported.items()},
    )


def _logical(san: San) -> dict[str, Any]:
    """Return the sizes of logical volumes: of one, or by node."""
    found: dict[str, dict[str, int]] = {}
    for key, one in san.logical.items():
        node, _, name = key.partition(" ")
        found.setdefault(name.partition("/")[2], {})[node] = one["size"]
    return {name: dict(sorted(sizes.items())) for name, sizes in found.items()}


def _objects(config: Config) -> dict[str, Any]:
    found = {}
    for uuid, entity in config.objects.items():
        values = encode(entity)
        for name in _LEFT_OUT:
            values.pop(name, None)
        found[uuid] = {"kind": KIND_OF[type(entity)], **values}
    return found


def _data(san: San, disk: Disk) -> str:
    """Return what a disk holds, on the first node that has it."""
    (node, *_) = disk.nodes or ("",)
    for part in (disk, *disk.children):
        volume = "/".join(map(str, part.logical_id[-2:]))
        for path in (part.volume, volume):
            found = contents.read(san, node, path)
            if found:
                return found
    return ""


def _guest(record: dict[str, Any]) -> dict[str, Any]:
    state = dict(record["state"])
    state["disks"] = sorted(state["disks"])
    volumes = {disk: record["drives"][disk] for disk in state["disks"]}
    return state | {"sizes": record.get("sizes", {}), "volumes": volumes}


async def _held(cluster: SimCluster, name: str) -> list[str]:
    def silent(_done: int, _total: int, _unit: str, _note: str) -> None:
        """Drop the progress."""

    agent = cluster.nodes.nodes[name].agent
    facts = await agent.handle("facts", {}, cluster.config_store.term, silent)
    recorded = epochs(cluster.config)
    return sorted(_by(one, recorded) for one in facts["held"])


def _by(held: dict[str, Any], recorded: dict[str, int]) -> str:
    uuid, epoch = held["disk"], held["epoch"]
    known = recorded.get(uuid)
    return uuid if epoch == known else f"{uuid} by epoch {epoch}, recorded is {known}"


def epochs(config: Config) -> dict[str, int]:
    """Return the epoch of every disk by uuid."""
    return {disk.uuid: disk.epoch for disk in config.all(Disk)}
