# SPDX-License-Identifier: BSD-2-Clause
"""Whether all is well, in a sentence; what wants a person, room, and the last jobs."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from moorage.units import counted

from .jobs import recent
from .kinds import DISK
from .rooms import Rooms
from .values import ROOT, address, called, moment
from .visit import Page, Visit

_WEEKS = 14 * 86400.0
"""Seconds before a certificate's end at which somebody is told."""
_MOST = 20
"""Lines of what wants a person."""
_EACH = 4
"""Instances of one status that have a line each; a node that is lost has many."""


class Wants(NamedTuple):
    """Something that wants a person.

    Attributes
    ----------
    tone
        ``bad``, or ``warn``.
    href
        Where it is; empty for nowhere.
    type
        What to type.
    """

    tone: str
    sentence: str
    href: str = ""
    type: str = ""


async def overview(rooms: Rooms, visit: Visit) -> Page:
    """Show the overview."""
    client = visit.client
    nodes, instances, disks = await asyncio.gather(
        client.query("node", _NODE),
        client.query("instance", ("name", "status", "status.reason"), _NOT_UP),
        client.query("disk", ("uuid", "name", "quarantine", "behind"), _OFF),
    )
    info, jobs, store = await asyncio.gather(
        client.info(), recent(client), client.store()
    )
    drained, paused = await asyncio.gather(client.drained(), client.watcher_pause())
    every = nodes.objects(), instances.objects(), disks.objects()
    wants = [
        *_of_store(store),
        *_of_nodes(every[0]),
        *_of_instances(every[1]),
        *_of_disks(every[2]),
    ]
    if drained:
        wants.append(
            Wants("warn", "New jobs are refused.", "", "gnt-cluster queue undrain")
        )
    if paused and paused > time.time():
        sentence = f"The watcher does nothing until {moment(paused)}."
        wants.append(Wants("warn", sentence, "", "gnt-cluster watcher continue"))
    values = {
        "cluster": info["name"],
        "sentence": _sentence(wants, every[0], len(every[1])),
        "well": not wants,
        "wants": wants[:_MOST],
        "left": len(wants) - _MOST,
        "room": await rooms.of(visit.role, client),
        "jobs": jobs,
        "version": info["software_version"],
        "master": store["master"],
        "since": moment(store["since"]) if store["since"] else "",
        "engine": _ENGINES[store["engine"]],
        "members": store["members"],
    }
    return Page("overview", values)


_ENGINES = {"sqlite": "a file", "etcd": "etcd"}
"""Where the state is."""
_NODE = (
    *("name", "role", "offline", "drained", "silence", "copy", "copy.why"),
    *("certificate_ends", "pinst_cnt"),
)
_NOT_UP = ("|", ("!=", "status", "running"), ("?", "status.reason"))
"""Of thousands that run, all that is shown is how many they are."""
_OFF = ("|", ("?", "quarantine"), ("?", "behind"))


def _sentence(
    wants: Sequence[Wants], nodes: Sequence[Mapping[str, Any]], down: int
) -> str:
    number = sum(one["pinst_cnt"] or 0 for one in nodes)
    known = counted(len(nodes), "node"), counted(number, "instance")
    size = f"{known[0]}, {number - down} of {known[1]} running"
    if not wants:
        return f"All is well: {size}."
    verb = "wants" if len(wants) == 1 else "want"
    return f"{counted(len(wants), 'thing')} {verb} a person: {size}."


def _of_store(store: Mapping[str, Any]) -> Iterator[Wants]:
    for one in store["troubles"]:
        told = f"{one['said'][:1].upper()}{one['said'][1:]}."
        yield Wants("bad" if one["urgent"] else "warn", told, "", one["command"])


def _of_nodes(nodes: Sequence[Mapping[str, Any]]) -> Iterator[Wants]:
    soon = time.time() + _WEEKS
    for one in nodes:
        name, href = one["name"], address("node", one["name"])
        if one["offline"]:
            yield Wants("warn", f"Node {name} is marked offline.", href)
            continue
        if one["silence"]:
            yield Wants("bad", f"Node {name} does not answer: {one['silence']}.", href)
        if one["copy.why"]:
            told = f"Node {name} has no current copy of the state: {one['copy.why']}."
            yield Wants("bad", told, href)
        ends = one["certificate_ends"]
        if ends and ends < soon:
            told = f"The certificate of node {name} ends {moment(ends)}."
            yield Wants("warn", told, href, "gnt-cluster renew-crypto")


def _of_instances(instances: Sequence[Mapping[str, Any]]) -> Iterator[Wants]:
    by_status: dict[str, list[Mapping[str, Any]]] = {}
    for one in instances:
        status = str(one["status"])
        if status.startswith("ERROR") or one["status.reason"]:
            by_status.setdefault(status, []).append(one)
    for status, those in by_status.items():
        tone = "bad" if status.startswith("ERROR") else "warn"
        if len(those) > _EACH:
            query = urlencode({"filter": f'status == "{status}"'})
            told = f"{len(those):,} instances are {status}."
            yield Wants(tone, told, f"{ROOT}/instance?{query}")
            continue
        for one in those:
            why = f": {one['status.reason']}" if one["status.reason"] else ""
            told = f"Instance {one['name']} is {status}{why}."
            yield Wants(tone, told, address("instance", one["name"]))


def _of_disks(disks: Sequence[Mapping[str, Any]]) -> Iterator[Wants]:
    for one in disks:
        name, href = (
            called(DISK, one["name"], one["uuid"]),
            address("disk", one["uuid"]),
        )
        if one["quarantine"]:
            yield Wants(
                "bad", f"Disk {name} is quarantined: {one['quarantine']}.", href
            )
        elif one["behind"]:
            yield Wants("warn", f"Disk {name} is behind: {one['behind']}.", href)
