# SPDX-License-Identifier: BSD-2-Clause
"""Each word that a refusal says for a disk is typed, and means that disk."""

from collections.abc import AsyncIterator

import pytest

from desk import Desk, desk_at
from moorage.testing.cluster import SimCluster


async def twins(directory) -> SimCluster:
    """Return two instances with a disk *root* each, and a free one."""
    cluster = await SimCluster.start(directory)
    kind = {"size": 64, "name": "root", "provider": "usersan"}
    for name in ("web1", "web2"):
        await cluster.run(
            "OP_INSTANCE_CREATE",
            instance_name=name,
            disk_template="ext",
            disks=[kind],
            pnode="node1",
            start=False,
        )
    await cluster.run("OP_DISK_ADD", disk_template="ext", **kind)
    return cluster


@pytest.fixture
async def at() -> AsyncIterator[Desk]:
    async with desk_at(twins) as found:
        yield found


@pytest.mark.requirement("S3-46")
async def test_every_word_of_an_ambiguous_name_is_understood(at: Desk) -> None:
    said = await at.refused("gnt-disk grow root 64")
    (hint,) = (line for line in said.splitlines() if "say which: " in line)
    words = hint.partition("say which: ")[2].split(" or ")
    assert words[-2:] == ["web1/root", "web2/root"]
    uuids = set()
    for word in words:
        lines = (await at.types(f"gnt-disk info {word}")).splitlines()
        (uuid,) = {one.split()[-1] for one in lines if "UUID" in one}
        listed = await at.types(f"gnt-disk list --no-headers -o uuid {word}")
        assert listed.split() == [uuid]
        uuids.add(uuid)
    assert len(uuids) == 3
    several = await at.types(
        "gnt-disk list --no-headers -o instance web2/root web1/root"
    )
    assert several.split() == ["web2", "web1"]
    assert "unknown_entity" in await at.refused("gnt-disk info web1/none")
    assert "unknown_entity" in await at.refused("gnt-disk list web3/root")


@pytest.mark.requirement("S3-46")
async def test_the_hint_of_a_name_that_is_taken_is_typed(at: Desk) -> None:
    await at.types("gnt-disk rename web2/root data")
    await at.types("gnt-disk rename web1/root data")
    await at.types("gnt-disk attach root web2")
    said = await at.refused("gnt-disk rename web2/root data")
    (hint,) = (line for line in said.splitlines() if "hint: " in line)
    line = hint.partition("hint: ")[2]
    assert line == "gnt-disk info web2/data"
    assert "web2" in await at.types(line)


async def test_a_disk_with_a_new_volume_keeps_its_name_without_a_warning(
    at: Desk,
) -> None:
    """Its old volume is still known to its provider by that name, and nobody's disk."""
    await at.types(
        "gnt-instance add -t ext --disk 0:size=64M,provider=san,name=boot --no-install "
        "--no-start --no-nics -n node1 web3"
    )
    await at.types("gnt-instance recreate-disks web3")
    screen = await at.screen("gnt-cluster verify")
    assert "is named 'boot' too" not in screen.out + screen.err
    await at.types("gnt-disk detach web3/boot")
    await at.types("gnt-disk attach boot web2")
    await at.types("gnt-disk rename web2/boot start")
    said = await at.refused("gnt-disk add -t ext -p san -s 64 --name boot")
    assert "was made as 'boot'" in said


async def test_two_disks_swap_their_names_in_one_request(at: Desk) -> None:
    """The names that a request says mean the state before it; both stay what they were.

    Where storage knows a volume by its name, no other disk gets that.
    """
    await at.types("gnt-instance modify --disk add:size=64,name=data web1")
    shown = "gnt-disk list --no-headers -o name,volume web1/root web1/data"
    (_, first), (_, second) = (
        line.split() for line in (await at.types(shown)).splitlines()
    )
    swap = "--disk 0:modify,name=data --disk 1:modify,name=root"
    await at.types(f"gnt-instance modify {swap} web1")
    now = {tuple(line.split()) for line in (await at.types(shown)).splitlines()}
    assert now == {("data", first), ("root", second)}
    both = "--disk 0:modify,name=x --disk 1:modify,name=x"
    assert "would be named 'x'" in await at.refused(f"gnt-instance modify {both} web1")
    await at.types("gnt-disk add -t ext -p san -s 64 --name boot")
    await at.types("gnt-disk attach boot web1")
    swap = "--disk root:modify,name=boot --disk boot:modify,name=root"
    await at.types(f"gnt-instance modify {swap} web1")
    await at.types("gnt-disk add -t ext -p san -s 64 --name swap")
    await at.types("gnt-disk attach swap web1")
    swap = "--disk root:modify,name=swap --disk swap:modify,name=root"
    said = await at.refused(f"gnt-instance modify {swap} web1")
    assert "the volume of disk swap was made as 'swap'" in said


async def test_a_name_is_free_for_what_is_changed_behind_its_going(at: Desk) -> None:
    """Names are swapped at once; what goes between two changes is gone for the later.

    Both disks keep what they were but for their names.
    """
    await at.types("gnt-instance modify --disk add:size=64,name=data web1")
    await at.types(
        "gnt-instance modify --disk 0:modify,name=boot --disk data:detach "
        "--disk 0:modify,name=data,mode=ro web1"
    )
    shown = await at.types("gnt-disk list --no-headers -o name,mode web1/data data")
    assert sorted(shown.split()) == ["data", "data", "ro", "rw"]
