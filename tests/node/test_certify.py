# SPDX-License-Identifier: BSD-2-Clause
"""Providers held to their contract: a good one, and those with one fault each.

The scripts are real, on files that two nodes share; nothing needs root.
"""

import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from moorage.node.agent import Agent
from moorage.node.extensions.providers import Providers
from moorage.node.local_host import LocalMachine
from moorage.node.machine.images import Images
from moorage.protocol import (
    ClearProvider,
    DigestProvider,
    TryProvider,
    Verb,
    silent,
    to_wire,
)
from moorage.storage.certify import CHECKS, Check, named
from moorage.storage.provider import OPTIONAL, SCRIPTS
from moorage.units import Mib

pytestmark = pytest.mark.skipif(not shutil.which("qemu-io"), reason="needs qemu-io")

HERE = Path(__file__).parent / "certified"
GOOD = (HERE / "shelf.sh").read_text()


class Fault(NamedTuple):
    """What is wrong with a provider, and which check says so."""

    name: str
    check: str
    old: str
    new: str
    start: float = 0
    """Seconds that its interpreter takes to start."""


FAULTS = [
    Fault(**one) for one in tomllib.loads((HERE / "faults.toml").read_text())["fault"]
]


class Pair:
    """Two nodes that share a directory, and have a provider in common."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.shared = top / "shared"
        for name in "vltn":
            (self.shared / name).mkdir(parents=True)
        self.place = top / "ext" / "shelf"
        self.place.mkdir(parents=True)
        (top / "list").write_text(f"{self.shared}\n")
        images = Images("node", top / "list")
        self.agents = {}
        for name in ("node1", "node2"):
            providers = Providers([top / "ext"])
            machine = LocalMachine(top / "log", providers, [], images)
            self.agents[name] = Agent(name, top / name, machine, {})

    def install(self, script: str, optional: tuple[str, ...] = tuple(OPTIONAL)) -> None:
        for name in (*SCRIPTS, *optional):
            path = self.place / name
            path.write_text(script)
            path.chmod(0o755)
        (self.place / "parameters.list").write_text("dir  where volumes are\n")
        (self.place / "places.list").write_text("dir\n")

    async def ask(self, node: str, call: Verb[Any]) -> Any:
        verb, args = to_wire(call)
        return await self.agents[node].handle(verb, args, 1, silent)

    def order(self, check: str) -> dict[str, Any]:
        return {
            "provider": "shelf",
            "run": "r1",
            "params": {"dir": str(self.shared)},
            "size": Mib(16),
            "check": check,
        }

    async def tried(self, check: Check) -> tuple[str, str]:
        """Do the parts of a check as the operation does; return verdict and why."""
        earlier: Any = None
        for part, (second, _) in enumerate(check.parts):
            node = "node2" if second else "node1"
            call = TryProvider(**self.order(check.name), part=part)
            verb, args = to_wire(call)
            args |= {"earlier": earlier} if earlier else {}
            earlier = await self.agents[node].handle(verb, args, 1, silent)
        if check.needs_two:
            await self.clear("node2", check.name, remove=False)
            await self.clear("node1", check.name)
        return earlier["verdict"], earlier.get("why", "")

    async def clear(self, node: str, check: str = "", *, remove: bool = True) -> Any:
        return await self.ask(node, ClearProvider(**self.order(check), remove=remove))

    def left(self) -> Iterator[Path]:
        """Yield what is left of volumes."""
        yield from (self.shared / "v").iterdir()
        yield from (self.shared / "l").iterdir()
        for node in self.agents:
            yield from (self.top / node / "trials").glob("*")


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
async def test_a_good_provider_passes(pair: Pair, check: Check) -> None:
    pair.install(GOOD)
    verdict, why = await pair.tried(check)
    moot = ("not applicable", "it has no device, but a URI only")
    assert (verdict, why) == moot if check.name == "device" else verdict == "passes", (
        why
    )
    assert list(pair.left()) == []


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
async def test_a_fault_is_found_by_its_check(pair: Pair, fault: Fault) -> None:
    assert fault.old in GOOD
    script = GOOD.replace(fault.old, fault.new)
    if fault.start:
        script = script.replace("set -eu\n", f"set -eu\nsleep {fault.start}\n")
    pair.install(script)
    verdict, why = await pair.tried(named(fault.check))
    assert verdict == "fails", why
    assert why


async def test_a_provider_of_ganetis_time_breaks_nothing_that_it_never_promised(
    pair: Pair,
) -> None:
    """Its ``verify`` is ``exit 0``, and a path is a path."""
    script = GOOD.replace("! strange >&2; exit", "exit 0")
    pair.install(script.replace(' && [ ! -L "$image" ]', ""))
    (pair.place / "places.list").unlink()
    verdict, why = await pair.tried(named("verify-refuses"))
    assert (verdict, why[:24]) == ("not applicable", "it takes every parameter")
    verdict, why = await pair.tried(named("link"))
    assert (verdict, why[:14]) == ("not applicable", "it is followed")
    assert list(pair.left()) == []


async def test_history_is_no_file_of_the_provider(pair: Pair) -> None:
    pair.install(GOOD)
    for name in (".git/objects/ab", ".hidden"):
        (pair.place / name).parent.mkdir(parents=True, exist_ok=True)
        (pair.place / name).write_text("x")
    told = await pair.ask("node1", DigestProvider(provider="shelf"))
    assert ".hidden" in told["files"]
    assert not [name for name in told["files"] if ".git" in name]
