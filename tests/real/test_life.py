# SPDX-License-Identifier: BSD-2-Clause
"""The life of instances and disks, as people type it, with real guests and data."""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.api.luxi import LuxiClient
from moorage.node.hypervisors.kvm.guest_dir import Home
from moorage.node.hypervisors.kvm.monitor import conversation

pytestmark = pytest.mark.real

TINY = (
    "gnt-instance add -o tiny --no-nics -t sharedfile --disk 0:size=64M"
    " --disk 1:size=32M,dev_type=ext,provider=loop,name=second"
)


@pytest.fixture(scope="module")
def homes(town: Any) -> Iterator[Any]:
    """Two instances: ``web1`` booted from its disk, on node1; ``web2`` on node2."""
    town.type(f"{TINY} -n node1 web1")
    town.guest("web2", "node2")
    yield town
    for name in ("web1", "web2"):
        town.type(f"gnt-instance remove -f {name}")
    assert town.healthy()
    assert town.stage.volumes() == set()


@pytest.fixture
def data(homes: Any) -> Iterator[str]:
    """Return the uuid of a detached disk, which is gone afterwards."""
    homes.type("gnt-disk add -t ext -p qsd -s 32M data1")
    yield homes.uuid("data1")
    (disk,) = homes.ask("gnt-disk info data1")
    if disk["instance"]:
        homes.type("gnt-disk detach data1")
    homes.type("gnt-disk remove -f data1")


def status(town: Any, name: str) -> str:
    return str(town.stage.status(name))


# -- a guest with its system on a disk -------------------------------------------------


@pytest.mark.requirement("S0-01", "S0-03", "S0-17", "S3-06", "S3-09")
def test_an_instance_with_disks_of_two_templates(homes: Any) -> None:
    first, second = homes.disks("web1")
    origin = homes.inside("web1", "cat /etc/moorage-system")
    assert origin.startswith(f"disk {first[:20]}")
    assert homes.serials("web1") == {first[:20], second[:20]}
    templates = [homes.stage.disk(disk)["dev_type"] for disk in (first, second)]
    assert templates == ["sharedfile", "ext"]
    (row,) = homes.ask("gnt-instance list -o disk_template,snodes web1")
    assert row == {"disk_template": "mixed", "snodes": []}
    path = Path(homes.stage.disk(first)["logical_id"][1])
    assert path.is_relative_to(homes.path / "shared" / "web1")
    assert path.stat().st_size == 64 << 20


def test_shutdown_startup_and_reboot(homes: Any) -> None:
    second = homes.disks("web1")[1]
    kept = homes.write("web1", second)
    homes.type("gnt-instance shutdown web1")
    assert status(homes, "web1") == "ADMIN_down"
    homes.type("gnt-instance shutdown web1")  # once more is the same
    homes.type("gnt-instance startup web1")
    assert status(homes, "web1") == "running"
    homes.inside("web1", "touch /tmp/before")
    homes.type("gnt-instance startup web1")  # it runs: it is left alone
    assert homes.inside("web1", "ls /tmp/before")
    homes.type("gnt-instance reboot -f web1")
    assert homes.inside("web1", "ls /tmp/before || true") == ""
    assert homes.checksum("web1", second) == kept


def processors(homes: Any) -> int:
    return int(homes.inside("web1", "grep -c ^processor /proc/cpuinfo"))


def megabytes(homes: Any) -> int:
    return int(homes.inside("web1", "free -m").split()[7])


def test_a_reboot_takes_what_was_changed(homes: Any) -> None:
    """By itself it is a hard one; a soft one resets the machine that the guest has."""
    second = homes.disks("web1")[1]
    kept = homes.write("web1", second)
    had = megabytes(homes)
    (before,) = homes.ask("gnt-instance list -o be/memory,be/vcpus web1")
    homes.type("gnt-instance modify -B vcpus=2,memory=192 -H vga=std web1")
    homes.type("gnt-instance reboot -f --type=soft web1")
    assert processors(homes) == 1
    homes.type("gnt-instance reboot -f web1")
    assert processors(homes) == 2
    assert megabytes(homes) > had
    (runs,) = homes.ask("gnt-instance list -o oper_vcpus,oper_ram web1")
    assert runs == {"oper_vcpus": 2, "oper_ram": 192}
    assert homes.inside("web1", "ls /sys/bus/pci/devices/*/boot_vga")
    assert homes.checksum("web1", second) == kept
    was = f"vcpus={before['be/vcpus']},memory={before['be/memory']}"
    homes.type(f"gnt-instance modify -B {was} -H vga=default web1")
    homes.type("gnt-instance reboot -f web1")
    assert processors(homes) == 1


def at_home(homes: Any, name: str) -> Home:
    (row,) = homes.ask(f"gnt-instance list -o uuid,pnode {name}")
    return Home(homes.scratch.node(row["pnode"]).run / "kvm", row["uuid"])


def arranged(homes: Any, name: str) -> list[tuple[int, int, int]]:
    """Return where QEMU says that each processor is: socket, core, thread."""

    async def ask() -> Any:
        async with conversation(at_home(homes, name)) as monitor:
            return await monitor.ask("query-cpus-fast")

    places = [one["props"] for one in asyncio.run(ask())]
    return [(p["socket-id"], p["core-id"], p["thread-id"]) for p in places]


def bindings(homes: Any, name: str) -> list[list[int]]:
    """Return the processors that each thread of a guest's QEMU may run on."""
    threads = Path(f"/proc/{at_home(homes, name).pid()}/task").iterdir()
    return [sorted(os.sched_getaffinity(int(one.name))) for one in threads]


def test_processors_are_arranged_and_bound(homes: Any) -> None:
    topology = "cpu_sockets=2,cpu_cores=1,cpu_threads=2"
    homes.type(f"gnt-instance modify -B vcpus=4 -H {topology},cpu_mask=0:1:1:all web1")
    homes.type("gnt-instance reboot -f web1")
    assert processors(homes) == 4
    sockets = "cat /sys/devices/system/cpu/cpu*/topology/physical_package_id"
    assert homes.inside("web1", sockets).split() == list("0011")
    assert arranged(homes, "web1") == [(0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 0, 1)]
    found = bindings(homes, "web1")
    assert (found.count([0]), found.count([1])) == (1, 2)
    homes.type("gnt-instance modify -H cpu_mask=1 web1")
    homes.type("gnt-instance reboot -f web1")
    assert {tuple(one) for one in bindings(homes, "web1")} == {(1,)}
    usual = "cpu_sockets=default,cpu_cores=default,cpu_threads=default,cpu_mask=default"
    homes.type(f"gnt-instance modify -B vcpus=default -H {usual} web1")
    homes.type("gnt-instance reboot -f web1")
    assert processors(homes) == 1


def test_the_console_answers(homes: Any) -> None:
    with LuxiClient(homes.scratch.environment()["MOORAGE_SOCKET"]) as luxi:
        told, line, came = luxi.line("web1")
    assert told["instance"] == "web1"
    line.settimeout(180)
    with line:
        line.sendall(b"\necho ans''wered\n")
        while b"answered" not in came:
            came += line.recv(4096)


def test_activate_and_deactivate_disks(homes: Any) -> None:
    first, second = homes.disks("web1")
    before = homes.type("gnt-instance activate-disks web1")
    image = homes.stage.disk(first)["logical_id"][1]
    assert before.splitlines()[0] == f"node1:disk/0:{image}"
    device = before.splitlines()[1].removeprefix("node1:disk/1:")
    assert device.startswith("/dev/loop")
    assert homes.inside("web1", "true") == ""
    said = homes.refused("gnt-instance deactivate-disks web1")
    assert "web1" in said
    assert homes.sees("web1", second)
    homes.type("gnt-instance shutdown --timeout=0 web1")
    volume = homes.stage.disk(second)["logical_id"][1]

    def loops() -> list[str]:
        records = (homes.path / "run-loop" / "node1").glob("*")
        return [path.read_text() for path in records]

    assert loops() == []
    told = homes.type("gnt-instance activate-disks web1")
    assert told.splitlines()[1].startswith("node1:disk/1:/dev/loop")
    assert len(loops()) == 1
    homes.type("gnt-instance deactivate-disks web1")
    assert loops() == []
    assert volume in homes.stage.volumes()
    homes.type("gnt-instance startup web1")
    assert homes.sees("web1", second)


@pytest.mark.requirement("S0-27", "S3-54")
def test_a_disk_grows_under_a_running_guest(homes: Any) -> None:
    second = homes.disks("web1")[1]
    kept = homes.write("web1", second)
    assert homes.size("web1", second) == 32
    homes.type("gnt-instance grow-disk web1 1 8M")
    homes.stage.until(lambda: homes.size("web1", second) == 40, 10, "40 MiB")
    homes.type("gnt-instance grow-disk --absolute web1 second 48M")
    homes.stage.until(lambda: homes.size("web1", second) == 48, 10, "48 MiB")
    assert homes.checksum("web1", second) == kept
    assert homes.stage.disk(second)["size"] == 48
    said = homes.refused("gnt-instance grow-disk --absolute web1 1 32M")
    assert "48" in said
    assert "no disk" in homes.refused("gnt-instance grow-disk web1 7 8M")
    assert homes.stage.disk(second)["size"] == 48


def limits(homes: Any, name: str) -> list[tuple[int, int]]:
    """Return requests and bytes a second that QEMU lets a guest have of each disk."""

    async def ask() -> Any:
        async with conversation(at_home(homes, name)) as monitor:
            return await monitor.ask("query-block")

    drives = [one["inserted"] for one in asyncio.run(ask()) if "disk-" in one["qdev"]]
    return [(one["iops"], one["bps"]) for one in drives]


def test_a_guest_gets_no_more_of_a_disk_than_its_limit(homes: Any) -> None:
    """Two MiB at half a MiB a second, after what may be had at once: seconds."""
    first, second = homes.disks("web1")
    homes.type("gnt-cluster modify -D sharedfile:total_iops_sec=5000")
    half = "gnt-instance modify --disk 1:total_bytes_sec=524288 web1"
    homes.type(half)
    assert sorted(limits(homes, "web1")) == [(0, 524288), (5000, 0)]
    read = f"dd if={homes.device('web1', second)} of=/dev/null bs=64k count=32"
    began = time.monotonic()
    homes.inside("web1", f"echo 3 > /proc/sys/vm/drop_caches; {read} 2>/dev/null")
    assert time.monotonic() - began > 2.5
    homes.type("gnt-instance modify --disk 1:total_bytes_sec=default web1")
    homes.type("gnt-disk detach second")
    homes.type("gnt-disk attach second web1")
    assert sorted(limits(homes, "web1")) == [(0, 0), (5000, 0)]
    homes.type("gnt-instance shutdown --timeout=0 web1")
    homes.type("gnt-instance startup web1")
    assert sorted(limits(homes, "web1")) == [(0, 0), (5000, 0)]
    homes.type("gnt-cluster modify -D sharedfile:total_iops_sec=default")
    assert set(limits(homes, "web1")) == {(0, 0)}
    assert homes.sees("web1", first)


# -- disks change hands ----------------------------------------------------------------


@pytest.mark.requirement("S3-01", "S3-24", "S3-39", "S3-40", "S3-41", "S3-42", "S3-43")
def test_a_disk_goes_round_in_every_syntax_with_its_data(homes: Any, data: str) -> None:
    kept = ""
    rounds = [
        ("web1", "attach,name=data1", 2, "detach"),
        ("web2", f"attach,uuid={data}", 0, "-1:detach"),
        ("web1", "-1:attach,name=data1", 2, "2:detach"),
        ("web2", f"-1:attach,uuid={data}", 0, "data1:detach"),
        ("web1", "0:attach,name=data1", 0, f"{data}:detach"),
        ("web1", f"1:attach,uuid={data}", 1, "1:detach"),
    ]
    for name, attach, slot, detach in rounds:
        homes.type(f"gnt-instance modify --disk {attach} {name}")
        assert homes.disks(name)[slot] == data
        assert kept in ("", homes.checksum(name, data))
        kept = homes.write(name, data)
        homes.type(f"gnt-instance modify --disk {detach} {name}")
        assert data not in homes.disks(name)
        assert not homes.sees(name, data)
    assert homes.stage.disk("data1")["epoch"] >= len(rounds)


@pytest.mark.requirement("S3-09", "S3-42")
def test_a_disk_attached_in_front_moves_the_others(homes: Any, data: str) -> None:
    before = homes.disks("web1")
    homes.type("gnt-instance modify --disk 0:attach,name=data1 web1")
    assert homes.disks("web1") == [data, *before]
    names = [homes.stage.disk(uuid)["iv_name"] for uuid in homes.disks("web1")]
    assert names == ["disk/0", "disk/1", "disk/2"]
    homes.type("gnt-instance modify --disk 0:detach web1")
    assert homes.disks("web1") == before


@pytest.mark.requirement("S3-24", "S3-43", "S3-44", "S3-45", "S3-46")
def test_what_cannot_be_meant_is_refused(homes: Any, data: str) -> None:
    before = homes.disks("web1")
    for words, sentence in (
        ("attach", "name"),
        (f"attach,name=data1,uuid={data}", "name"),
        ("attach,size=1G", "name"),
        ("attach,name=nosuch", "nosuch"),
        ("9:attach,name=data1", "9"),
        ("9:detach", "9"),
        ("nosuch:detach", "nosuch"),
        ("data1:detach", "data1"),
        ("0:detach,name=x", "no parameters"),
        ("0:remove,force", "no parameters"),
        ("0:fly", "fly"),
    ):
        said = homes.refused(f"gnt-instance modify --disk {words} web1")
        assert sentence in said, words
        assert homes.disks("web1") == before, words
    homes.type("gnt-disk attach data1 web2")
    said = homes.refused("gnt-instance modify --disk attach,name=data1 web1")
    assert "web2" in said
    assert homes.sees("web2", data)


@pytest.mark.requirement("S3-20", "S3-21", "S3-38", "S3-50")
def test_add_and_remove_are_whole(homes: Any) -> None:
    homes.type(
        "gnt-instance modify --disk -1:add,size=8M,dev_type=ext,provider=qsd,name=x1"
        " --disk -1:add,size=8M,dev_type=sharedfile,name=x2 web2"
    )
    first, second = homes.disks("web2")
    assert homes.device("web2", first) != homes.device("web2", second)
    homes.write("web2", first)
    homes.type("gnt-instance modify --disk x1:remove --disk x2:remove web2")
    assert homes.disks("web2") == []
    assert homes.serials("web2") == set()
    names = {row["name"] for row in homes.ask("gnt-disk list -o name")}
    assert not {"x1", "x2"} & names
    assert homes.healthy()


# -- guests change nodes ---------------------------------------------------------------


@pytest.mark.requirement("S0-08", "S0-11", "S0-13", "S0-14")
def test_migration_keeps_data_and_the_guest(homes: Any, data: str) -> None:
    homes.type("gnt-disk attach data1 web2")
    kept = homes.write("web2", data)
    homes.inside("web2", "echo alive > /tmp/mark")
    for target in ("node3", "node1", "node2"):
        homes.type(f"gnt-instance migrate -f -n {target} web2")
        assert homes.home("web2") == target
        assert homes.inside("web2", "cat /tmp/mark") == "alive\n"
        assert homes.checksum("web2", data) == kept
    said = homes.refused("gnt-instance migrate -f -n node2 web2")
    assert "is on node node2 already" in said
    homes.type("gnt-node migrate -f -n node3 node2")
    assert homes.home("web2") == "node3"
    assert homes.checksum("web2", data) == kept
    assert homes.healthy()
    homes.type("gnt-instance migrate -f -n node2 web2")


@pytest.mark.requirement("S0-08", "S0-11", "S0-13")
def test_failover_keeps_data(homes: Any) -> None:
    second = homes.disks("web1")[1]
    kept = homes.write("web1", second)
    homes.type("gnt-instance failover -f --shutdown-timeout 0 -n node3 web1")
    assert homes.home("web1") == "node3"
    assert homes.checksum("web1", second) == kept
    homes.type("gnt-instance shutdown --timeout 0 web1")
    homes.type("gnt-instance failover -f -n node1 web1")
    assert status(homes, "web1") == "ADMIN_down"
    homes.type("gnt-instance startup web1")
    assert homes.checksum("web1", second) == kept
    assert homes.healthy()


@pytest.mark.requirement("S0-08", "S0-09")
def test_what_is_on_one_node_stays_there(homes: Any) -> None:
    homes.type("gnt-disk add -t file -s 8M -n node2 local1")
    homes.type("gnt-disk attach local1 web2")
    for verb in ("migrate", "failover"):
        said = homes.refused(f"gnt-instance {verb} -f -n node3 web2")
        assert "disk layout 'file' does not allow" in said
    homes.type("gnt-disk detach local1")
    said = homes.refused("gnt-disk attach local1 web1")
    assert "node2" in said
    homes.type("gnt-disk remove -f local1")


@pytest.mark.requirement("S0-65", "S0-74")
def test_a_system_is_installed_and_booted_through_a_uri(homes: Any) -> None:
    homes.type(
        "gnt-instance add -o tiny --no-nics -n node3 -t ext"
        " --disk 0:size=64M,provider=qsd,access=userspace web3"
    )
    try:
        (disk,) = homes.disks("web3")
        origin = homes.inside("web3", "cat /etc/moorage-system")
        assert origin.startswith(f"disk {disk[:20]}")
        info = homes.look("gnt-instance info web3")
        assert "on primary: kvm:nbd:unix:" in info
        (log,) = homes.path.glob("node3/log/os/create-tiny*-web3-*.log")
        # Its script wrote to a file that a storage daemon serves from that URI.
        assert "/run/exports/" in log.read_text()
        homes.type("gnt-instance migrate -f -n node2 web3")
        assert homes.inside("web3", "cat /etc/moorage-system") == origin
    finally:
        homes.type("gnt-instance remove -f --shutdown-timeout 0 web3")
    assert homes.healthy()
