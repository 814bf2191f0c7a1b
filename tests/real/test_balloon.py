# SPDX-License-Identifier: BSD-2-Clause
"""A real guest gives memory back while it runs; one without a driver keeps it."""

import gzip
from pathlib import Path

import pytest
from msgspec.structs import replace

from moorage.errors import Failed
from moorage.node.hypervisors.kvm import cpio
from moorage.protocol import Door

pytestmark = pytest.mark.real

DRIVER = "virtio_balloon"


def with_driver(built: Path, at: Path) -> Path:
    """Write an initramfs that has the driver's module, too."""
    (module,) = built.glob(f"kernel/lib/modules/*/kernel/drivers/virtio/{DRIVER}.ko")
    more = cpio.archive([cpio.plain(f"m/{DRIVER}.ko", module.read_bytes())])
    at.write_bytes((built / "initrd.gz").read_bytes() + gzip.compress(more))
    return at


async def test_a_guest_gives_memory_back_and_moves_with_what_it_has(
    lab, tmp_path: Path
) -> None:
    built = Path(lab.spec().hvparams["initrd_path"]).parent
    initrd = with_driver(built, tmp_path / "initrd.gz")
    spec = lab.spec(accel="tcg", initrd_path=str(initrd))
    await lab.one.start(spec)
    async with lab.inside(lab.one, spec) as inside:
        await inside.wait_ready()
        await inside.run(f"insmod /m/{DRIVER}.ko")
    assert (await lab.one.find(spec.uuid)).now == spec.memory
    await lab.one.fill(spec.uuid, 96, 60)
    found = await lab.one.find(spec.uuid)
    assert (found.now, found.memory, found.holds) == (96, 128, 96)

    there = replace(spec, waits=True, ports=found.ports, places=found.cards)
    door = await lab.two.incoming(there)
    assert door.machine["balloon"] is True
    await lab.one.migrate(spec.uuid, lab.two.address, door, lambda *_: None)
    assert (await lab.two.find(spec.uuid)).now == 96
    await lab.two.fill(spec.uuid, 128, 60)
    assert (await lab.two.find(spec.uuid)).now == 128
    await lab.two.stop(spec.uuid, 0)


async def test_one_without_a_driver_keeps_what_it_has(lab) -> None:
    spec = lab.spec(accel="tcg", kernel_path="", initrd_path="")
    await lab.one.start(spec)
    with pytest.raises(Failed, match="has 128 MiB, and not 64, after 1 s: it needs"):
        await lab.one.fill(spec.uuid, 64, 1)
    assert (await lab.one.find(spec.uuid)).now == 128
    await lab.one.stop(spec.uuid, 0)


async def test_it_goes_nowhere_where_a_machine_without_a_balloon_waits(lab) -> None:
    """Neither to a node that makes none, nor to an agent of an earlier version."""
    spec = lab.spec(accel="tcg", kernel_path="", initrd_path="")
    await lab.one.start(spec)
    seats = (await lab.one.find(spec.uuid)).cards
    without = spec.hvparams | {"balloon": False}
    there = replace(spec, waits=True, hvparams=without, places=seats)
    door = await lab.two.incoming(there)
    earlier = Door(port=door.port, key=door.key, ports=door.ports, tells=True)
    for one in (door, earlier):
        with pytest.raises(Failed, match="balloon is 'True' here, and 'False' there"):
            await lab.one.migrate(spec.uuid, lab.two.address, one, lambda *_: None)
    assert (await lab.one.find(spec.uuid)).state == "running"
    await lab.two.abort(spec.uuid)
    await lab.one.stop(spec.uuid, 0)
