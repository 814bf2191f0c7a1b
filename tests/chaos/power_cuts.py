# SPDX-License-Identifier: BSD-2-Clause
# ruff: noqa: T201 - a program that prints
"""Cut the power of a node under load, again and again.

python tests/chaos/power_cuts.py --seed 1 --cuts 30

The node is emulated: its QEMU is killed, and what was not synced is gone. It is a
candidate, or the master, which then comes back or is followed by another one. Each time
its disk is looked at before anything is started on it. The exit status is 1 if anything
that was acknowledged is gone, or anything is torn.
"""

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from account import OF_INSTANCES, acknowledged, learnt, locks, owned, settled, status
from answers import Account
from clients import Client, Own
from emulated import HOME, build
from ledger import USUAL, Ledger
from torn import short, torn
from village import AGENT, Village, jobs_of

from moorage.daemons import process
from moorage.errors import MoorageError

BUSY = 300.0
"""Seconds that clients get for that at most."""
ROLES = {
    "node1": {"candidate": 5, "master, comes back": 2, "master, is followed": 1},
    "node2": {"candidate": 1, "master, comes back": 5, "master, is followed": 3},
}
"""What the node is when its power is cut, and how often in proportion, by who leads:
mostly what it is already, since a failover takes an emulated machine a minute."""


class Local(Client):
    """A client whose instance and disks are on the node whose power is cut.

    Attributes
    ----------
    sworn
        The epoch of each disk (uuid) of which an attach was acknowledged.
    """

    def __init__(self, village: Village, number: int, seed: int, told: Account) -> None:
        super().__init__(village, number, seed, told, [])  # type: ignore[arg-type]
        self.sworn: dict[str, int] = {}
        self._village = village

    def prepare(self) -> None:
        fields = {"instance_name": self.instance, "disk_template": "diskless"}
        status, why = self._do("OP_INSTANCE_CREATE", pnode="node2", **fields)
        assert status == "success", why

    def _choices(self) -> list[Callable[[], None]]:
        choices = [self._add, self._attach, self._detach, self._rename, self._remove]
        choices += [self._modify, self._add, self._attach, self._detach, self._tag]
        choices += [self._clear] if self.suspects else []
        return [*choices, self._grow, self._power]

    def _add(self) -> None:
        if len(self.disks) >= 5:
            return
        name, size = self._fresh(), self._dice.randrange(1, 4)
        fields = {"disk_template": "file", "node": "node2", "size": size}
        if self._own("OP_DISK_ADD", name, name=name, **fields):
            self.disks[name] = Own(size)

    def _attach(self) -> None:
        before = {name for name, own in self.disks.items() if own.attached}
        super()._attach()
        after = {name for name, own in self.disks.items() if own.attached}
        for name in after - before:
            self._swear(name)

    def _swear(self, name: str) -> None:
        """Keep the epoch at which a disk is attached, as the cluster tells it."""
        try:
            rows = self._village.rows("disk", "name", "uuid", "epoch")
        except (MoorageError, OSError):
            return
        for row in rows:
            if row["name"] == name and self.running:
                self.sworn[row["uuid"]] = row["epoch"]


class Cuts:
    """Cuts the power, and compares."""

    def __init__(self, village: Village, args: argparse.Namespace, told: Account):
        self.counts: Counter[str] = Counter()
        self.failovers: Counter[str] = Counter()
        self.seconds: list[float] = []
        self._village = village
        self._only = args.only
        self._account = told
        self._dice = Random(f"{args.seed}/cuts")  # noqa: S311
        self._clients = [
            Local(village, n, args.seed, told) for n in range(args.clients)
        ]

    def begin(self) -> None:
        """Let the clients come."""
        for client in self._clients:
            client.prepare()
            client.start()

    def end(self) -> None:
        """Let them go."""
        for client in self._clients:
            client.over = True
            client.working.clear()

    def one(self) -> None:
        """Cut the power once."""
        begun = time.monotonic()
        roles = ROLES[self._village.leader]
        if self._only:
            roles = {role: 1 for role in roles if role in self._only}
        (role,) = self._dice.choices(list(roles), list(roles.values()))
        self._lead("node1" if role == "candidate" else "node2")
        current = self._await_current()
        self._busy()
        current = self._copies() if role == "candidate" else current
        before = list(self._account.told)
        sworn = {uuid: no for one in self._clients for uuid, no in one.sworn.items()}
        self._village.machine.cut_power()
        self._account.ledger.note("cut", role=role, copies=current)
        self.counts[role] += 1
        time.sleep(self._dice.uniform(0.0, 2.0))
        for client in self._clients:
            client.working.clear()  # each waits for the end of what it has begun
        if role == "master, is followed":
            self._followed()
        self._village.machine.boot()
        seen = self._village.look()
        self._account.ledger.note("look", seen=short(seen))
        held = role != "candidate" or current.get("node2") == "current"
        self._compare(seen, before if held else [], sworn, role)
        self._back(role)
        self._work(at_work=False)
        self._quiet()
        self.seconds.append(time.monotonic() - begun)

    # -- what happens ------------------------------------------------------------

    def _busy(self) -> None:
        """Let clients work until some of it is acknowledged: that is to be there."""
        due = self._account.acknowledged() + self._dice.randrange(3, 16)
        self._work(at_work=True)
        process.wait_until(lambda: self._account.acknowledged() >= due, BUSY)
        time.sleep(self._dice.uniform(0.0, 2.0))

    def _work(self, *, at_work: bool) -> None:
        for client in self._clients:
            (client.working.set if at_work else client.working.clear)()
        for client in self._clients:
            assert at_work or client.idle.wait(1200), f"{client.name} does not rest"

    def _lead(self, node: str) -> None:
        """Let a node lead, planned."""
        if self._village.leader != node:
            self._await_current()
            self._taken(node, "planned")

    def _taken(self, node: str, kind: str) -> None:
        self.failovers[kind] += 1
        words = ("gnt-cluster", "master-failover", "--yes-do-it")
        for number in range(1, 8):
            done = self._village.command(*words, on=node)
            said = done.stdout + done.stderr
            facts = {"kind": kind, "on": node, "status": done.returncode}
            self._account.ledger.note("failover", number=number, said=said, **facts)
            # One that is emulated may start more slowly than its command waits.
            if done.returncode == 0 or "on this node already" in said:
                break
            time.sleep(1.0)
        else:
            self._account.fault("no master", f"{kind} failover to {node}: {said}")
            raise AssertionError(said)
        self.failovers[f"{kind}, at first try"] += number == 1
        self._village.leader = node
        if not self._village.wait_answer():
            self._account.fault("no master", f"none answers on {node} after a failover")
        for fault in acknowledged(self._village, self._account):  # type: ignore[arg-type]
            self._account.fault(*fault)

    def _followed(self) -> None:
        time.sleep(self._dice.uniform(0.0, 3.0))
        self._taken("node1", "unplanned")

    def _back(self, role: str) -> None:
        """Start on the node what was there."""
        self._village.start_agent("node2")
        if role == "candidate":
            return
        done = self._village.command("moorage", "master", "start", on="node2")
        if role == "master, is followed":
            told = done.stdout + done.stderr
            if "master is on node node1" not in told:
                self._account.ledger.note("old master", said=told)
            return
        if not self._village.wait_answer():
            said = f"the master does not come back: {done.stdout}{done.stderr}"
            self._account.fault("no master", said)
            return
        for fault in acknowledged(self._village, self._account):  # type: ignore[arg-type]
            self._account.fault(*fault)

    def _copies(self) -> dict[str, str]:
        try:
            rows = self._village.rows("node", "name", "copy")
        except (MoorageError, OSError):
            return {}
        return {one["name"]: one["copy"] for one in rows}

    def _await_current(self) -> dict[str, str]:
        """Wait until all copies are whole."""
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline:
            found = self._copies()
            states = [found.get(one) for one in self._village.scratch.names]
            if states.count("current") == len(states) - 1:
                return found
            time.sleep(0.3)
        self._account.fault("copies", f"not all become whole: {found}")
        return found

    # -- what is looked at -------------------------------------------------------

    def _compare(
        self, seen: dict[str, Any], told: list[Any], sworn: dict[str, int], role: str
    ) -> None:
        """Compare what is on the disk with what was acknowledged before the cut."""
        for kind, text in torn(seen, role):
            self._account.fault(kind, f"{role}: {text}")
        jobs = jobs_of(seen["copy" if role == "candidate" else "store"])
        for one in told:
            job = jobs.get(one.job)
            now = status(job) if job else "gone"
            if now != one.status:
                text = f"job {one.job} ({one.op_id}) told as {one.status} is {now}"
                self._account.fault("lost", f"{role}: {text}, on the disk")
        fences = seen["fences"]
        for uuid, number in sworn.items():
            there = fences.get(f"disk-{uuid}")
            if there is not None and (not there.isdecimal() or int(there) < number):
                text = f"fence of disk {uuid} is {there}, acknowledged was {number}"
                self._account.fault("fence", f"{role}: {text}")

    def _quiet(self) -> None:
        """Compare the whole, once nobody asks for more."""
        village: Any = self._village
        for text in settled(village):
            self._account.fault("stuck", text)
        disks = village.rows(
            "disk", "uuid", "name", "volume", "size", "instance", "quarantine"
        )
        instances = village.rows("instance", *OF_INSTANCES)
        for text in owned(disks, instances, self._clients):
            self._account.fault("lost", text)
        for fault in acknowledged(village, self._account):
            self._account.fault(*fault)
        for text in locks(village):
            self._account.fault("locks", text)
        learnt(disks, instances, self._clients)
        for text in self._files(disks):
            self._account.fault("volumes", text)
        for one in disks:
            if one["quarantine"]:
                self._account.ledger.note("quarantine", disk=one)

    def _files(self, disks: list[dict[str, Any]]) -> Iterator[str]:
        """Yield images that are lost, or that nobody knows of."""
        files = self._village.look()["files"]
        sizes = {path.rpartition("/")[2]: size for path, size in files.items()}
        for one in disks:
            name = one["volume"].rpartition("/")[2]
            size = sizes.pop(name, None)
            if one["quarantine"]:
                continue
            if size is None:
                yield f"disk {one['name']} has no image {name}: {sorted(files)}"
            elif size < one["size"] << 20:
                yield f"image of {one['name']} has {size} bytes, not {one['size']} MiB"
        for name in sizes:
            yield f"orphan: nobody knows of image {name}"


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cuts", type=int, default=30)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--only", nargs="*", default=(), help="what it is")
    parser.add_argument("--keep", action="store_true", help="keep files that broke")
    parser.add_argument("--account", type=Path, default=USUAL, help="what is added to")
    return parser.parse_args()


def main() -> int:
    """Run the program; return its exit status."""
    args = _parsed()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    ledger = Ledger(args.account, "power-cuts", args.seed)
    account = Account(ledger)
    built = HOME / ".build" / "chaos-machine"
    build(built)
    home = Path(tempfile.mkdtemp(prefix="cuts-"))
    village = Village(built, home)
    cuts = Cuts(village, args, account)
    try:
        village.found()
        cuts.begin()
        while cuts.counts.total() < args.cuts and not account.faults:
            cuts.one()
            took, told = cuts.seconds[-1], account.acknowledged()
            print(
                f"cut {cuts.counts.total()}: {dict(cuts.counts)}, {told} acknowledged, "
                f"{took:.0f} s, {len(account.faults)} faults",
                flush=True,
            )
    except Exception as error:
        account.fault("driver", f"{type(error).__name__}: {error}")
        raise
    finally:
        cuts.end()
        _close(village, ledger, account, cuts, keep=args.keep)
    print("no fault" if not account.faults else f"{len(account.faults)} faults")
    return 1 if account.faults else 0


def _close(
    village: Village, ledger: Ledger, account: Account, cuts: Cuts, *, keep: bool
) -> None:
    """End everything, and add the run to the account."""
    if account.faults:
        try:
            print(village.machine.run(f"tail -n 15 {AGENT}/agent.log", 20.0))
        except (MoorageError, OSError) as error:
            print(error)
    village.close()
    faults = [{"kind": kind, "text": text} for kind, text in account.faults]
    counts = {
        "kills": {"power": cuts.counts.total()},
        "failovers": dict(cuts.failovers),
        "acknowledged": account.acknowledged(),
        "operations": account.operations,
        "doubted": account.lost,
        "refused": account.refused,
        "checks": len(cuts.seconds),
    }
    for kind, text in account.faults:
        print(f"{kind}: {text}")
    print(ledger.close(cuts.counts, counts, faults))
    if account.faults and keep:
        kept = ledger.directory / "broken" / ledger.name
        shutil.copytree(
            village.home, kept, ignore=shutil.ignore_patterns("*.sock", "channel")
        )
        print(f"left in {kept}")
    shutil.rmtree(village.home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
