# SPDX-License-Identifier: BSD-2-Clause
"""Parameters that Ganeti has no word for: how often they are set, and left out."""

from collections.abc import Iterator, Mapping
from typing import Any

from moorage.disk_templates import LIMITED
from moorage.model import Config, Disk, Instance, NodeGroup
from moorage.units import counted

from .document import Document, Part

_FILTER = "filter"


def told(config: Config) -> Iterator[str]:
    """Yield each that is set, with the number of places."""
    found = {
        "the limits of what guests may ask of disks": _limited(config),
        "the filters of network cards": _filtered(config),
    }
    for what, places in found.items():
        if places:
            yield f"{what}, set in {counted(places, 'place')}"


def _limited(config: Config) -> int:
    given = [disk.params for disk in config.all(Disk)]
    given += config.cluster.diskparams.values()
    for group in config.all(NodeGroup):
        given += group.diskparams.values()
    return sum(not one.keys().isdisjoint(LIMITED) for one in given)


def _filtered(config: Config) -> int:
    given: list[Mapping[str, Any]] = [*config.cluster.nicparams.values()]
    for group in config.all(NodeGroup):
        given += group.networks.values()
    for instance in config.all(Instance):
        given += [nic.nicparams for nic in instance.nics]
    return sum(bool(one.get(_FILTER)) for one in given)


def leave_out(document: Document) -> None:
    """Take out of a document what Ganeti would refuse to read."""
    for params in _of_cards(document):
        params.pop(_FILTER, None)


def _of_cards(document: Document) -> Iterator[Part]:
    """Yield the parameters of network cards, wherever they stand."""
    yield from document["cluster"]["nicparams"].values()
    for group in document["nodegroups"].values():
        yield from group["networks"].values()
    for instance in document["instances"].values():
        yield from (nic["nicparams"] for nic in instance["nics"])
