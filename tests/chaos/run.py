# SPDX-License-Identifier: BSD-2-Clause
# ruff: noqa: T201 - a program that prints
"""Break a cluster of real processes under load, and compare it with the truth.

python tests/chaos/run.py --seed 1 --kills 1000

Clients make random requests while masters and agents are killed, stopped, and kept from
writing. Now and then everybody rests, and the whole cluster is compared with what is on
its storage and with what was acknowledged. The exit status is 1 if anything is wrong.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from account import Watch, check, quarantined
from clients import Account, Client
from proxy import CUT, LATE, PASS, REFUSE
from yard import Yard

EVENTS = {
    "master killed": 8,
    "agent killed": 8,
    "both killed": 2,
    "agent stopped": 1,
    "master's disk full": 1,
    "replies cut": 2,
    "requests late": 2,
    "connections refused": 1,
}
"""What happens, and how often in proportion."""

WIRE = {"replies cut": CUT, "requests late": LATE, "connections refused": REFUSE}


class Chaos:
    """Decides from a seed what breaks when."""

    def __init__(self, yard: Yard, seed: int) -> None:
        self.counts: Counter[str] = Counter()
        self._yard = yard
        self._dice = random.Random(f"{seed}/chaos")  # noqa: S311

    def kills(self) -> int:
        """Return how many masters and how many agents have died, the fewer of both."""
        both = self.counts["both killed"]
        masters = self.counts["master killed"] + both
        return min(masters, self.counts["agent killed"] + both)

    def happen(self) -> None:
        """Let one thing break, and mend it after a moment."""
        (what,) = self._dice.choices(list(EVENTS), list(EVENTS.values()))
        node = self._dice.choice(self._yard.scratch.names)
        self.counts[what] += 1
        if what == "agent stopped":
            pid = self._yard.agent_pid(node)
            with self._yard.stopped([pid] if pid else []):
                time.sleep(self._dice.choice((0.3, 1.0, 3.0, 18.0)))
            return
        if what == "master's disk full":
            with self._yard.full_disk(self._yard.master_pids()):
                time.sleep(self._dice.uniform(0.05, 1.5))
            self._yard.start_master()
            return
        if what in WIRE:
            proxy = self._yard.proxies.by_node[node]
            proxy.mode = WIRE[what]
            time.sleep(self._dice.uniform(0.1, 1.0))
            proxy.mode = PASS
            return
        if what != "master killed":
            self._yard.kill_agent(node)
        if what != "agent killed":
            self._yard.kill_master(whole=self._dice.random() < 0.5)
        time.sleep(self._dice.choice((0.0, 0.0, 0.05, 0.5)))
        if what != "agent killed":
            self._yard.start_master()
        self._yard.start_agent(node)


def run(yard: Yard, args: argparse.Namespace) -> tuple[list[str], Account, Chaos]:
    """Break the cluster until enough has died; return what is wrong."""
    account, chaos = Account(), Chaos(yard, args.seed)
    shared = _shared(yard, 3)
    clients = [Client(yard, n, args.seed, account, shared) for n in range(args.clients)]
    for client in clients:
        client.prepare()
        client.start()
    watch = Watch(yard, account)
    watch.start()
    dice = random.Random(f"{args.seed}/pauses")  # noqa: S311
    faults: list[str] = []
    checks = 0
    while chaos.kills() < args.kills and not faults:
        _work(clients, at_work=True)
        for _ in range(args.burst):
            time.sleep(dice.uniform(0.02, args.pause))
            chaos.happen()
        _work(clients, at_work=False)
        faults = [*account.faults, *check(yard, clients, account)]
        checks += 1
        _told(chaos, account, checks, faults, watch)
    watch.over = True
    for client in clients:
        client.over = True
        client.join(10)
    return faults, account, chaos


def _shared(yard: Yard, number: int) -> list[str]:
    names = [f"shared{one}" for one in range(number)]
    for name in names:
        words = ("-t", "ext", "-p", yard.truth.provider, "-s", "8M", name)
        done = yard.command("gnt-disk", "add", *words)
        assert done.returncode == 0, done.stderr
    return names


def _work(clients: Sequence[Client], *, at_work: bool) -> None:
    for client in clients:
        if at_work:
            client.working.set()
        else:
            client.working.clear()
    if not at_work:
        for client in clients:
            client.idle.wait(300)


def _told(
    chaos: Chaos, account: Account, checks: int, faults: list[str], watch: Watch
) -> None:
    print(
        f"check {checks}: {account.operations} operations, {account.lost} in doubt, "
        f"{dict(chaos.counts)}, {watch.looks} looks, {len(faults)} faults",
        flush=True,
    )


def main() -> int:
    """Run the program; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=20, help="of each kind")
    parser.add_argument("--pause", type=float, default=0.6, help="at most, in s")
    parser.add_argument("--burst", type=int, default=6, help="events between checks")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--slow", type=int, default=60, help="a script's pause, ms")
    parser.add_argument("--guest", default="", help="directory of the tiny guest")
    parser.add_argument("--keep", action="store_true", help="leave it when it broke")
    args = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="chaos-"))
    yard = Yard(root, nodes=args.nodes, slow=args.slow, guest=args.guest)
    faults: list[str] = ["it broke"]
    try:
        faults, account, chaos = run(yard, args)
        for line in quarantined(yard):
            print(f"quarantined: {line}")
        ended = Counter(told.status for told in account.told)
        print(f"seed {args.seed}: jobs {dict(ended)}, events {dict(chaos.counts)}")
        print("\n".join(faults) or "no fault")
    finally:
        if faults and args.keep:
            print(f"left in {root}")
        else:
            yard.close()
            root.rmdir()
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
