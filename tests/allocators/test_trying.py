# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-debug iallocator``: messages that two hails answer, ours and Ganeti's."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from allocating import HAIL, Shelf, asks
from desk import Desk, desk
from moorage.testing.cluster import ClusterBuilder

OURS = Path(sys.executable).parent / "hail"


@pytest.fixture
async def at(tmp_path: Path, programs: Shelf) -> AsyncIterator[Desk]:
    builder = ClusterBuilder(4).node("far1", "far").node("far2", "far")
    builder.node("off1", offline=True).node("bare1", vm_capable=False)
    builder.node("full1", drained=True)
    cluster = await asks(tmp_path / "nodes", programs, builder)
    async with desk(cluster, tmp_path) as found:
        for name, node in (("web1", "node1"), ("web2", "node2")):
            await found.types(
                f"gnt-instance add -t ext --disk 0:size=64,provider=san -n {node} "
                f"--no-install -B memory=512 {name}"
            )
        await found.types(
            "gnt-instance add -t drbd --disk 0:size=64 -n node1:node3 --no-install db"
        )
        yield found
    await cluster.stop()


REQUESTS = {
    "allocate": "-m allocate -t drbd --disks 64,64 --memory 512 new",
    "allocate here": "-m allocate -t diskless --memory 1G -g far new",
    "multi-allocate": "-m multi-allocate -t plain --disks 64 --count 3 new",
    "relocate": "-m relocate web1",
    "relocate a copy": "-m relocate db",
    "node-evacuate": "-m node-evacuate --evac-mode primary-only web1 db",
    "all": "-m node-evacuate --evac-mode all web1 db",
    "change-group": "-m change-group web1 web2",
}


@pytest.mark.requirement("S2-11")
@pytest.mark.parametrize("name", REQUESTS)
async def test_our_hail_answers_what_ganetis_does(
    at: Desk, tmp_path: Path, name: str
) -> None:
    text = await at.types(f"gnt-debug iallocator --dir in {REQUESTS[name]}")
    file = tmp_path / "message.json"
    # Ganeti's clusters tell no storage units.
    file.write_text(json.dumps(_as_ganetis(json.loads(text))))
    ours = await _answer(OURS, file)
    assert ours["success"], ours["info"]
    if HAIL.exists():
        assert ours == await _answer(HAIL, file)


async def _answer(program: Path, file: Path) -> dict[str, Any]:
    call = partial(subprocess.run, [program, file], capture_output=True, check=True)
    found: dict[str, Any] = json.loads((await asyncio.to_thread(call)).stdout)
    return found


def _as_ganetis(message: dict[str, object]) -> dict[str, object]:
    def without(value: object) -> object:
        if isinstance(value, dict):
            kept = {k: v for k, v in value.items() if k not in ("storage", "sunit")}
            return {k: without(v) for k, v in kept.items()}
        return [without(one) for one in value] if isinstance(value, list) else value

    found = without(message)
    assert isinstance(found, dict)
    return found


async def test_an_answer_is_shown_as_it_is(at: Desk, programs: Shelf) -> None:
    programs.shell("mine", "echo what is this")
    line = "gnt-debug allocator --dir out -m relocate web1"
    assert await at.types(f"{line} -I mine") == "what is this\n\n"
    answer = json.loads(await at.types(f"{line} -I hail"))
    assert answer["success"]
    assert "there is an instance web1" in await at.refused(
        "gnt-debug iallocator -m allocate -t diskless web1"
    )


async def test_who_chose_is_told(at: Desk, programs: Shelf) -> None:
    programs.names("mine", "node3")
    line = "gnt-instance add -t diskless --no-install"
    told = await at.types(f"{line} -I mine web3")
    assert "Selected nodes for instance web3 via iallocator mine: node3" in told
    await at.types("gnt-cluster modify -I mine")
    assert "default instance allocator: mine" in await at.types("gnt-cluster info")
    told = await at.types(f"{line} web4")
    assert "Selected nodes for instance web4: node3" in told
    told = await at.types(f"{line} -I hail web5")
    assert "via iallocator hail: " in told
    assert "has no allocator 'nosuch'" in await at.refused(
        "gnt-cluster modify -I nosuch"
    )


async def test_it_gets_the_clusters_words(at: Desk, programs: Shelf) -> None:
    programs.shell("mine", 'shift; echo "$@"')
    await at.types("gnt-cluster modify --default-iallocator-params cost=2,quick=")
    line = "gnt-debug iallocator --dir out -I mine -m relocate web1"
    assert await at.types(line) == "--cost=2 --quick\n\n"
    told = await at.refused("gnt-cluster modify --default-iallocator-params a/b=2")
    assert "is no option of an allocator" in told


async def test_several_by_a_file(at: Desk, programs: Shelf, tmp_path: Path) -> None:
    programs.names("mine", "node3")
    file = tmp_path / "instances.json"
    one = {"disk_template": "diskless", "mode": "create", "no_install": True}
    wanted = [one | {"instance_name": name, "disks": []} for name in ("a1", "a2")]
    file.write_text(json.dumps(wanted))
    await at.types(f"gnt-instance batch-create -I mine {file}")
    listed = await at.types("gnt-instance list --no-headers -o name,pnode a1 a2")
    assert listed.split() == ["a1", "node3", "a2", "node3"]
