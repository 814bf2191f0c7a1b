# SPDX-License-Identifier: BSD-2-Clause
# ruff: noqa: T201 - a program that prints
"""Break clusters of real processes under load, and compare them with the truth.

python tests/chaos/run.py --seed 1 --kills 1000

Clients make random requests while masters and agents are killed, stopped and kept from
writing, while other nodes take the lead, and file systems are full. Now and then
everybody rests, and the whole cluster is compared with what is on its storage and with
what was acknowledged. What was found is added to the files of ``--account``. The exit
status is 1 if anything is wrong.
"""

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

sys.path.append(str(Path(__file__).parents[1]))
import rooms
from account import Fault, Watch, check, quarantined
from answers import Account
from clients import Client
from etcd_yard import EtcdYard
from events import Chaos
from ledger import USUAL, Ledger
from yard import Yard

MENDED = ("failover", "defect")
"""Kinds of faults after which a cluster is as good as before."""


class Round:
    """One cluster, from its first request until it is broken for good, or long enough.

    Attributes
    ----------
    faults
        What must never happen, and did.
    """

    def __init__(self, args: argparse.Namespace, number: int, ledger: Ledger) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="chaos-"))
        self.faults: list[Fault] = []
        self.checks = 0
        seed = f"{args.seed}/{number}" if number else f"{args.seed}"
        guest = str(Path(args.guest).absolute()) if args.guest else ""
        kind = EtcdYard if args.store == "etcd" else Yard
        self.yard = kind(self.root, nodes=args.nodes, slow=args.slow, guest=guest)
        self.account = Account(ledger)
        self.chaos = Chaos(self.yard, self.account, seed, args.without, args.only)
        self._args = args
        self._pauses = Random(f"{seed}/pauses")  # noqa: S311
        self._shared = [f"shared{one}" for one in range(3)]
        self._clients = [
            Client(self.yard, n, seed, self.account, self._shared)
            for n in range(args.clients)
        ]
        self._watch = Watch(self.yard, self.account)

    def run(self, kills: int) -> None:
        """Break the cluster until so many processes have died, or it is broken."""
        _make(self.yard, self._shared)
        for client in self._clients:
            if "reused data" in self._args.without:
                client.keeper = None
            client.prepare()
            client.start()
        self._watch.start()
        while self.yard.kills.total() < kills and not self.broken:
            self._burst()
        self._watch.over = True
        for client in self._clients:
            client.over = True
            client.join(10)

    @property
    def broken(self) -> bool:
        """Whether more of this cluster would tell nothing."""
        return any(kind not in MENDED for kind, _ in self.faults)

    def _burst(self) -> None:
        _work(self._clients, at_work=True)
        for _ in range(self._args.burst):
            time.sleep(self._pauses.uniform(0.02, self._args.pause))
            self.chaos.happen()
            if any(kind not in MENDED for kind, _ in self.account.faults):
                break
        _work(self._clients, at_work=False)
        found = check(self.yard, self._clients, self.account)
        for kind, text in found:
            self.account.fault(kind, text)
        self.faults = list(self.account.faults)
        self.checks += 1
        print(
            f"check {self.checks}: {self.account.operations} operations, "
            f"{self.account.lost} in doubt, {dict(self.chaos.counts)}, "
            f"{self._watch.looks} looks, {len(self.faults)} faults",
            flush=True,
        )

    def counts(self) -> dict[str, int]:
        """Return what was done and told."""
        return {
            "acknowledged": self.account.acknowledged(),
            "operations": self.account.operations,
            "doubted": self.account.lost,
            "refused": self.account.refused,
            "checks": self.checks,
            **(self.yard.truth.stamps.counts if self.yard.truth.stamps else {}),
        }

    def close(self, keep: Path | None) -> None:
        """End the cluster; keep its files where they may tell why it broke."""
        self._watch.over = True
        if keep:
            self.yard.end()
            shutil.copytree(self.root, keep, symlinks=True, ignore=_no_sockets)
            print(f"left in {keep}")
        self.yard.close()
        self.root.rmdir()


def _no_sockets(directory: str, names: list[str]) -> list[str]:
    return [one for one in names if (Path(directory) / one).is_socket()]


def _make(yard: Yard, names: Sequence[str]) -> None:
    """Make the disks that all clients grab at."""
    for name in names:
        words = ("-t", "ext", "-p", yard.truth.provider, "-s", "8M", name)
        done = yard.command("gnt-disk", "add", *words)
        assert done.returncode == 0, done.stderr


def _work(clients: Sequence[Client], *, at_work: bool) -> None:
    for client in clients:
        if at_work:
            client.working.set()
        else:
            client.working.clear()
    if not at_work:
        for client in clients:
            assert client.idle.wait(2 * client.patience), f"{client.name} does not rest"


class Sums:
    """What all rounds of a run came to."""

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        self.kills: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.failovers: Counter[str] = Counter()
        self.outages: list[float] = []
        self.faults: list[dict[str, object]] = []

    def add(self, one: Round) -> None:
        """Add a round."""
        before = self.kills.total()
        self.events += one.chaos.counts
        self.kills += one.yard.kills
        self.counts.update(one.counts())
        self.failovers += one.chaos.failovers.counts
        self.outages += one.chaos.failovers.outages
        for line in quarantined(one.yard) if one.yard.answers() else ():
            print(f"quarantined: {line}")
        for kind, text in one.faults:
            print(f"{kind}: {text}")
            died = before + one.yard.kills.total()
            self.faults.append({"kind": kind, "text": text, "kills": died})

    def told(self) -> dict[str, object]:
        """Return the numbers of the run's line."""
        return {
            "kills": dict(self.kills),
            "failovers": dict(self.failovers),
            "outages": self.outages,
            **self.counts,
        }


def rounds(args: argparse.Namespace, ledger: Ledger, sums: Sums) -> None:
    """Break clusters until enough has died, or one is broken and that is enough."""
    number = 0
    while sums.kills.total() < args.kills and (args.go_on or not sums.faults):
        one = Round(args, number, ledger)
        broke = True
        try:
            one.run(min(args.kills - sums.kills.total(), args.each))
            broke = one.broken
        finally:
            one.faults = list(one.account.faults)
            sums.add(one)
            keep = args.account / "broken" / f"{ledger.name}-{number}"
            one.close(keep if broke and args.keep else None)
        number += 1


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=40, help="masters and agents")
    parser.add_argument("--each", type=int, default=150, help="kills of a cluster")
    parser.add_argument("--pause", type=float, default=0.6, help="at most, in s")
    parser.add_argument("--burst", type=int, default=6, help="events between checks")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--slow", type=int, default=60, help="a script's pause, ms")
    parser.add_argument("--store", default="sqlite", choices=("sqlite", "etcd"))
    parser.add_argument("--guest", default="", help="directory of the tiny guest")
    parser.add_argument("--keep", action="store_true", help="keep files that broke")
    parser.add_argument("--go-on", action="store_true", help="also after a fault")
    parser.add_argument("--without", nargs="*", default=(), help="events, reused data")
    parser.add_argument("--only", nargs="*", default=(), help="no other events")
    parser.add_argument("--account", type=Path, default=USUAL, help="what is added to")
    return parser.parse_args()


def main() -> int:
    """Run the program; return its exit status."""
    args = _parsed()
    rooms.enter()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    kind = "etcd" if args.store == "etcd" else "real" if args.guest else "chaos"
    ledger = Ledger(args.account, kind, args.seed)
    sums = Sums()
    try:
        rounds(args, ledger, sums)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        sums.faults.append({"kind": "driver", "text": text, "kills": 0})
        raise
    finally:
        line = ledger.close(sums.events, sums.told(), sums.faults)
        print(f"seed {args.seed}: {line}")
    print("no fault" if not sums.faults else f"{len(sums.faults)} faults")
    return 1 if sums.faults else 0


if __name__ == "__main__":
    sys.exit(main())
