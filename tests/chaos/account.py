# SPDX-License-Identifier: BSD-2-Clause
"""Compares a cluster in quiet with the truth, and with what it acknowledged."""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from answers import Account
from clients import Client
from truth import Guest
from yard import FINISHED, Yard

QUIET = 900.0
"""Seconds within which all jobs must have ended once nobody asks for more."""


def settled(yard: Yard) -> Iterator[str]:
    """Wait until every job is over and no script runs; yield what does not end."""
    deadline = time.monotonic() + QUIET
    left: list[str] = ["?"]
    while left and time.monotonic() < deadline:
        jobs = yard.rows("job", "id", "status", "summary")
        left = [f"{one}" for one in jobs if one["status"] not in FINISHED]
        left += yard.scripts_running()
        if left:
            time.sleep(0.2)
    yield from (f"it does not end: {one}" for one in left)


def _let_go(yard: Yard) -> None:
    """Do what verify advises about storage that a guest left on a silent node.

    A node that is silent for long must not keep a guest from being stopped, or from
    running elsewhere: the job warns that its storage is held there, and the
    administrator lets go of it.
    """
    stored = yard.stored_jobs().values()
    warned = {
        " ".join(line[-1].split()[2:4])
        for job in stored
        for op in job["ops"]
        for line in op["log"]
        if str(line[-1]).startswith("Warning: detach disk ")
    }
    advice = {
        str(one.get("hint")).removeprefix("if no job works on it: ")
        for one in _errors(yard)
        if str(one["object"]) in warned
    }
    for line in sorted(advice):
        if line.startswith("gnt-"):
            yard.command(*line.split())


OF_INSTANCES = ("name", "pnode", "admin_state", "be/maxmem", "tags")
"""What :func:`owned` looks at."""
Fault = tuple[str, str]
"""A word for its kind, and the sentence."""


def check(yard: Yard, clients: Sequence[Client], account: Account) -> list[Fault]:
    """Return every fault that shows in quiet."""
    faults = [("stuck", one) for one in settled(yard)]
    if not yard.answers():
        return [*faults, ("no master", "no master answers in quiet")]
    _let_go(yard)
    disks = yard.rows(
        "disk", "uuid", "name", "volume", "size", "instance", "epoch", "quarantine"
    )
    instances = yard.rows(
        "instance", "uuid", "disk.uuids", "disks_active", *OF_INSTANCES
    )
    kept = {name for one in clients if one.keeper for name in one.keeper.ours}
    plain = [one for one in disks if not _is_kept(one["name"], kept)]
    looks = {
        "volumes": _volumes(yard, plain),
        "places": _places(yard, disks, plain, instances),
        "guests": _guests(yard, instances),
        "lost": owned(disks, instances, clients),
        "locks": locks(yard),
        "tags": _tags(yard, account),
        "quarantine": _quarantines(disks, clients),
        "data": _kept(yard, disks, clients),
        "verify": _verified(yard, disks),
    }
    faults += [(kind, one) for kind, found in looks.items() for one in found]
    faults += acknowledged(yard, account)
    learnt(disks, instances, clients)
    return faults


def learnt(
    disks: list[dict[str, Any]],
    instances: list[dict[str, Any]],
    clients: Sequence[Client],
) -> None:
    """Tell clients what came of what nobody could tell them."""
    known = {one["name"]: one for one in disks}
    states = {one["name"]: one["admin_state"] for one in instances}
    for client in clients:
        client.learn(known, up=states[client.instance] == "up")


def _is_kept(name: str, kept: set[str]) -> bool:
    return name in kept or name.partition("x")[0] in kept


def acknowledged(yard: Yard, account: Account) -> Iterator[Fault]:
    """Yield what somebody was told of a job, and the master's store does not know."""
    with account.lock:
        accepted, told = set(account.accepted), list(account.told)
    stored = yard.stored_jobs()
    for job in sorted(accepted - stored.keys()):
        yield "lost", f"job {job} was accepted, and the store has none such"
    for one in told:
        job = stored.get(one.job)
        if job is not None and (now := status(job)) != one.status:
            named = f"job {one.job} ({one.op_id})"
            yield "lost", f"{named} was told as {one.status}; in the store it is {now}"


def quarantined(yard: Yard) -> list[str]:
    """Return why each disk in quarantine is there."""
    return [
        f"{one['name']}: {one['quarantine']}"
        for one in yard.rows("disk", "name", "quarantine")
        if one["quarantine"]
    ]


def two_writers(guests: Sequence[Guest]) -> list[str]:
    """Return what two running guests have, or are, and who they are."""
    found: dict[str, list[str]] = {}
    for guest in guests:
        if guest.state == "running":
            for what in (f"guest {guest.uuid}", *(f"disk {x}" for x in guest.disks)):
                found.setdefault(what, []).append(f"{guest.name} on {guest.node}")
    return [f"{what}: {who}" for what, who in sorted(found.items()) if len(who) > 1]


class Watch(threading.Thread):
    """Looks for two writers, and for fences that fall, while everything goes on."""

    def __init__(self, yard: Yard, account: Account) -> None:
        super().__init__(name="watch", daemon=True)
        self.looks = 0
        self.over = False
        self._yard = yard
        self._account = account
        self._fences: dict[str, int] = {}

    def run(self) -> None:
        try:
            while not self.over:
                self._look()
                self.looks += 1
                time.sleep(0.05)
        except Exception as error:  # noqa: BLE001 - who watches no more says so
            told = f"{self.name}: {type(error).__name__}: {error}"
            self._account.fault("driver", told)

    def _look(self) -> None:
        # A guest may move between two looks at nodes: what is seen twice is so.
        if self._yard.truth.watched and two_writers(self._yard.truth.guests()):
            for fault in two_writers(self._yard.truth.guests()[::-1]):
                self._account.fault("two writers", fault)
        self._fences_hold()

    def _fences_hold(self) -> None:
        seen = self._yard.fences()
        for name, number in seen.items():
            if number < self._fences.get(name, 0):
                text = f"fence {name} fell from {self._fences[name]} to {number}"
                self._account.fault("fence", text)
        self._fences |= seen


# -- one look each ---------------------------------------------------------------------


def _quarantines(
    disks: list[dict[str, Any]], clients: Sequence[Client]
) -> Iterator[str]:
    """Nothing is in quarantine of which every request so far was done."""
    owns = {name: own for one in clients for name, own in one.disks.items()}
    doubtful = {name for one in clients for name in one.doubtful}
    for disk in disks:
        own = owns.get(disk["name"])
        if disk["quarantine"] and own and own.sound and disk["name"] not in doubtful:
            yield f"quarantine without reason: {disk['name']}: {disk['quarantine']}"


def _kept(
    yard: Yard, disks: list[dict[str, Any]], clients: Sequence[Client]
) -> Iterator[str]:
    """Somebody's data is as it was written."""
    names = {one["name"]: bool(one["quarantine"]) for one in disks}
    there = yard.truth.kept.digests() if yard.truth.kept else {}
    for client in clients:
        if client.keeper:
            yield from client.keeper.look(names, there)
    if yard.truth.stamps:
        yield from yard.truth.stamped(disks)


def _volumes(yard: Yard, disks: list[dict[str, Any]]) -> Iterator[str]:
    there = yard.truth.volumes()
    known = {one["volume"]: one for one in disks}
    for name in sorted(there.keys() - known.keys()):
        yield f"orphan: nobody knows of volume {name}"
    for name in sorted(known.keys() - there.keys()):
        if not known[name]["quarantine"]:
            yield f"lost: disk {known[name]['name']} has no volume {name}"
    for name in sorted(there.keys() & known.keys()):
        if there[name] < known[name]["size"] and not known[name]["quarantine"]:
            yield f"volume {name}: {there[name]} MiB, recorded {known[name]['size']}"


def _places(
    yard: Yard,
    every: list[dict[str, Any]],
    disks: list[dict[str, Any]],
    instances: list[dict[str, Any]],
) -> Iterator[str]:
    """Nodes and storage hold exactly what the record says, at the record's epoch."""
    homes = {one["name"]: one for one in instances}
    wanted, volumes = {}, {}
    for disk in disks:
        home = homes.get(disk["instance"] or "")
        if home and home["disks_active"] and not disk["quarantine"]:
            wanted[home["pnode"], disk["uuid"]] = disk["epoch"]
            volumes[home["pnode"], disk["volume"]] = disk["epoch"]
    doubtful = {disk["uuid"] for disk in every if disk["quarantine"]}
    doubtful |= {disk["volume"] for disk in every if disk["quarantine"]}
    for what, seen, due in (
        ("agent", yard.held(), wanted),
        ("storage", yard.truth.attached(), volumes),
    ):
        for key in sorted(seen.keys() | due.keys()):
            if seen.get(key) != due.get(key) and key[1] not in doubtful:
                yield f"{what} {key}: epoch {seen.get(key)}, recorded {due.get(key)}"


def _guests(yard: Yard, instances: list[dict[str, Any]]) -> Iterator[str]:
    running = {
        (one["pnode"], one["uuid"]): frozenset(one["disk.uuids"])
        for one in instances
        if one["admin_state"] == "up"
    }
    seen = {(one.node, one.uuid): one for one in yard.truth.guests()}
    names = {one["uuid"]: one["name"] for one in instances}
    for key in sorted(running.keys() | seen.keys()):
        guest, disks = seen.get(key), running.get(key)
        label = f"{names.get(key[1])} on {key[0]}"
        if guest is None:
            yield f"guest {label} does not run, and should"
        elif disks is None:
            yield f"guest {label} is {guest.state} there, and should not be"
        elif guest.state != "running" or guest.disks != disks:
            has = set(guest.disks)
            yield f"guest {label} is {guest.state} with {has}, not {set(disks)}"


def owned(
    disks: list[dict[str, Any]],
    instances: list[dict[str, Any]],
    clients: Sequence[Client],
) -> Iterator[str]:
    """What was acknowledged to somebody about what is theirs alone, is so."""
    known = {one["name"]: one for one in disks}
    homes = {one["name"]: one for one in instances}
    for client in clients:
        sure = {n: o for n, o in client.disks.items() if n not in client.doubtful}
        for name, own in sorted(sure.items()):
            disk = known.get(name)
            wanted = client.instance if own.attached else None
            if disk is None:
                yield f"acknowledged disk {name} is gone"
            elif disk["size"] != own.size or disk["instance"] != wanted:
                told = (own.size, wanted)
                yield f"disk {name}: {disk['size']}, {disk['instance']}; told {told}"
        yield from _own_instance(client, homes[client.instance])


def _own_instance(client: Client, home: dict[str, Any]) -> Iterator[str]:
    told = {
        "power": ("admin_state", "up" if client.running else "down"),
        "memory": ("be/maxmem", client.memory),
        "place": ("pnode", client.place),
    }
    for what, (field, due) in told.items():
        if what not in client.doubtful and due not in (None, home[field]):
            yield f"{client.instance} has {field} {home[field]}; told {due}"
    for tag in sorted(client.tags.difference(home["tags"])):
        yield f"{client.instance} lacks tag {tag}, which was told"


def locks(yard: Yard) -> Iterator[str]:
    """Yield the locks that are left."""
    with yard.luxi() as luxi:
        _, rows = luxi.query("lock", ["name", "owner", "pending"])
    for row in rows:
        values = [value for _, value in row]
        if values[1] or values[2]:
            yield f"a lock is left: {values}"


def _tags(yard: Yard, account: Account) -> Iterator[str]:
    """The tags of the cluster are those that somebody was told of, and more."""
    with yard.luxi() as luxi:
        there = luxi.call("QueryTags", "cluster", "")
    for tag in sorted(account.tags.difference(there)):
        yield f"the cluster lacks tag {tag}, which was told"


def status(job: dict[str, Any]) -> str:
    states = [op["status"] for op in job["ops"]]
    ends = ("error", "canceling", "canceled")
    return next((one for one in ends if one in states), str(states[-1]))


def _verified(yard: Yard, disks: list[dict[str, Any]]) -> Iterator[str]:
    suspects = {f"disk {one['name']}" for one in disks if one["quarantine"]}
    for one in _errors(yard):
        if "quarantine" not in str(one) and one["object"] not in suspects:
            yield f"verify: {one}"


def _errors(yard: Yard) -> list[dict[str, Any]]:
    """Return the errors that verify finds."""
    done = yard.command("gnt-cluster", "verify", "--json")
    try:
        return list(json.loads(done.stdout)["errors"])
    except (ValueError, KeyError):
        return [{"object": "verify", "message": f"{done.stdout}{done.stderr}"}]
