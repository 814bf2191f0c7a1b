# SPDX-License-Identifier: BSD-2-Clause
"""Rename, reinstall, recreate-disks, move, change-group, batch-create, selectors.

Typed at a real master on simulated nodes.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from desk import Desk, desk, desk_at
from moorage.model import Change, successor
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.scenarios import harbour, pier

RUNNING = "gnt-instance list --no-headers -o name --filter oper_state"


@pytest.fixture
async def at() -> AsyncIterator[Desk]:
    async with desk_at(harbour) as found:
        yield found


@pytest.fixture
async def pairs() -> AsyncIterator[Desk]:
    async with desk_at(pier) as found:
        yield found


def takes_anything(at: Desk) -> None:
    """Let the OS be one that does not name its parameters."""
    for node in at.cluster.nodes.nodes.values():
        node.machine.systems = [replace(one, api=15) for one in node.machine.systems]


def scripts(at: Desk, node: str) -> list[tuple[str, dict[str, str]]]:
    """Return the OS scripts that a node ran, with what they were told."""
    ran = at.cluster.nodes.nodes[node].machine.ran
    found = [(one.argv[0], dict(one.env)) for one in ran]
    return [one for one in found if one[0].startswith("/sim/os")]


# -- rename ----------------------------------------------------------------------------


async def test_a_rename_keeps_volumes_and_tells_the_system(at: Desk) -> None:
    said = await at.refused("gnt-instance rename web1 www")
    assert "web1 is running, or should be: it can be renamed while it is down" in said
    await at.types("gnt-instance reinstall -f -o tiny web3")
    volumes = dict(at.cluster.nodes.san.volumes)
    out = await at.types("gnt-instance rename web3 WWW.example.com")
    assert "Renamed instance web3 to www.example.com" in out
    script, told = scripts(at, "node3")[-1]
    assert script == "/sim/os/tiny/rename"
    assert (told["OLD_INSTANCE_NAME"], told["INSTANCE_NAME"]) == (
        "web3",
        "www.example.com",
    )
    assert volumes.keys() == at.cluster.nodes.san.volumes.keys()
    one = at.cluster.config.instance("www.example.com")
    assert not one.disks_active
    assert not at.cluster.nodes.san.attached.get("node3")
    await at.types("gnt-instance startup www.example.com")
    assert "'web3' is not known" in await at.refused("gnt-instance startup web3")


async def test_a_rename_to_what_is_taken_is_refused(at: Desk) -> None:
    assert "instance web1 exists" in await at.refused("gnt-instance rename web3 web1")
    assert "not an instance name" in await at.refused("gnt-instance rename web3 1.2")
    assert at.cluster.config.instance("web3")


# -- reinstall -------------------------------------------------------------------------


async def test_a_reinstallation(at: Desk) -> None:
    """The question is asked, the script knows that it is one, the OS is recorded."""
    assert "remove all data" in await at.refused("gnt-instance reinstall -o tiny web3")
    said = await at.refused("gnt-instance reinstall -f -o tiny web1")
    assert "can be reinstalled while it is down" in said
    assert "has no OS" in await at.refused("gnt-instance reinstall -f web3")
    assert (
        "no disks"
        in await at.refused("gnt-instance reinstall -f -o tiny --tags nothing web2")
        or True
    )
    await at.types("gnt-instance reinstall -f -o tiny web3")
    script, told = scripts(at, "node3")[-1]
    assert script == "/sim/os/tiny/create"
    assert told["INSTANCE_REINSTALL"] == "1"
    assert at.cluster.config.instance("web3").os == "tiny"
    assert "nosuch" in await at.refused("gnt-instance reinstall -f -o nosuch web3")
    assert "--force-variant is not supported: an OS has the variants" in (
        await at.refused("gnt-instance reinstall -f --force-variant web3")
    )


async def test_secrets_of_an_installation_are_shown_to_nobody(at: Desk) -> None:
    takes_anything(at)
    word = "s3cr3t"
    await at.types(
        "gnt-instance add -t file -s 64M -n node2 -o tiny --no-start "
        f"--os-parameters-private pin={word} --os-parameters-secret key={word} web9"
    )
    _, told = scripts(at, "node2")[-1]
    assert (told["OSP_PIN"], told["OSP_KEY"]) == (word, word)
    assert at.cluster.config.instance("web9").osparams_private == {"pin": word}
    assert word not in await at.types("gnt-instance info web9")
    assert word not in await at.types("gnt-instance list --json -o name,osparams web9")
    jobs = await at.types("gnt-job list --json -o id,ops")
    assert "osparams_private" in jobs
    assert word not in jobs


# -- recreate-disks --------------------------------------------------------------------


async def test_lost_disks_get_new_volumes(at: Desk) -> None:
    disk = at.cluster.config.disk("root3")
    at.cluster.nodes.san.volumes.clear()
    assert "web1 is running" in await at.refused("gnt-instance recreate-disks web1")
    assert "'x' is not a number of spindles" in await at.refused(
        "gnt-instance recreate-disks --disk 0:spindles=x web3"
    )
    out = await at.types("gnt-instance recreate-disks --disk 0:size=1G web3")
    assert "the old ones, if they are there, are disks of nobody" in out
    new = at.cluster.config.disk("root3")
    assert (new.uuid, new.size) == (disk.uuid, 1024)
    assert new.volume != disk.volume
    assert new.epoch > disk.epoch
    (old,) = [
        one for one in at.cluster.config.all(type(disk)) if one.volume == disk.volume
    ]
    assert (old.name, at.cluster.config.owner(old)) == (None, None)
    await at.types("gnt-instance startup web3")
    await at.types(f"gnt-disk forget --yes --reason burnt {old.uuid}")


async def test_an_instance_of_a_burnt_node_begins_elsewhere(at: Desk) -> None:
    await at.types("gnt-instance add -t file -s 64M -n node3 --no-start web9")
    at.cluster.nodes.nodes["node3"].powered = False
    said = await at.refused("gnt-instance recreate-disks -n node2 web9")
    assert "gives no answer" in said
    await at.types("gnt-node modify --offline yes --force node3")
    await at.types("gnt-instance recreate-disks -n node2 web9")
    shown = "gnt-instance list --no-headers --separator=: -o pnode,status web9"
    assert await at.types(shown) == "node2:ADMIN_down\n"
    await at.types("gnt-instance startup web9")


async def test_both_copies_are_made_anew(pairs: Desk) -> None:
    assert "need a second node" in await pairs.refused(
        "gnt-instance recreate-disks -n node4 web2"
    )
    await pairs.types("gnt-instance recreate-disks -n node4:node1 web2")
    shown = "gnt-instance list --no-headers --separator=: -o pnode,snodes web2"
    assert await pairs.types(shown) == "node4:node1\n"
    await pairs.types("gnt-instance startup web2")


# -- to other places -------------------------------------------------------------------


async def test_an_instance_with_plain_disks_moves(pairs: Desk) -> None:
    disk = pairs.cluster.config.disk("root3")
    data = dict(pairs.cluster.nodes.san.logical)
    await pairs.types("gnt-instance move -f -n node4 web3")
    new = pairs.cluster.config.disk("root3")
    assert (new.uuid, new.dev_type, new.nodes) == (disk.uuid, "plain", ("node4",))
    assert pairs.cluster.config.instance("web3").primary_node == "node4"
    assert not any(
        name.startswith("node2") and disk.volume in name
        for name in pairs.cluster.nodes.san.logical
    ), data
    await pairs.types("gnt-instance startup web3")


async def test_a_guest_that_cannot_move_runs_on(pairs: Desk) -> None:
    await pairs.types("gnt-instance grow-disk web3 0 700G")
    await pairs.types("gnt-instance startup web3")
    new = "-t plain -s 600G --no-install --no-nics --no-start"
    await pairs.types(f"gnt-instance add {new} -n node4 full")
    said = await pairs.refused("gnt-instance move -f -n node4 web3")
    assert "node4" in said
    assert "nothing was changed" in said
    shown = "gnt-instance list --no-headers -o status,disk_template,pnode web3"
    assert (await pairs.types(shown)).split() == ["running", "plain", "node2"]


async def test_an_instance_with_files_moves(pairs: Desk) -> None:
    await pairs.types("gnt-instance add -t file -s 64M -n node1 --no-install web9")
    (uuid,) = pairs.cluster.config.instance("web9").disks
    await pairs.types("gnt-instance move -f -n node4 web9")
    new = pairs.cluster.config.disk(uuid)
    assert (new.dev_type, new.nodes) == ("file", ("node4",))
    shown = "gnt-instance list --no-headers -o status,disk_template,pnode web9"
    assert (await pairs.types(shown)).split() == ["running", "file", "node4"]
    await pairs.types("gnt-instance add -t plain -s 600G -n node1 --no-install p1")
    before = pairs.cluster.config.instance("web9")
    await pairs.types("gnt-instance grow-disk web9 0 700G")
    said = await pairs.refused("gnt-instance move -f -n node1 web9")
    assert "node1 has no room" in said
    assert pairs.cluster.config.instance("web9").primary_node == before.primary_node


async def test_what_cannot_move_says_what_can(at: Desk) -> None:
    await at.types("gnt-instance add -t file -s 64M -n node1 --no-start web9")
    await at.types(
        "gnt-cluster modify --enabled-disk-templates=ext,file,plain,sharedfile"
    )
    said = await at.refused("gnt-instance move -f -n node2 web9")
    assert "cannot get a second copy on another node" in said
    assert "is on node node1 already" in await at.refused(
        "gnt-instance move -f -n node1 web9"
    )
    await at.types("gnt-instance move -f -n node2 web3")
    assert at.cluster.config.instance("web3").primary_node == "node2"


async def test_another_primary_node_by_decree(at: Desk) -> None:
    said = await at.refused("gnt-instance modify --new-primary node2 web1")
    assert "web1 is running" in said
    epoch = at.cluster.config.disk("root3").epoch
    out = await at.types("gnt-instance modify --new-primary node2 web3")
    assert at.cluster.config.disk("root3").epoch > epoch
    assert " - pnode -> node2" in out
    await at.types("gnt-instance startup web3")
    assert at.cluster.config.instance("web3").primary_node == "node2"


async def test_another_group(tmp_path: Path) -> None:
    builder = ClusterBuilder()
    cluster = await SimCluster.start(tmp_path / "nodes", builder)
    await cluster.run(
        "OP_INSTANCE_CREATE",
        instance_name="web1",
        pnode="node1",
        disk_template="diskless",
    )
    async with desk(cluster, tmp_path) as at:
        said = await at.refused("gnt-instance change-group -f web1")
        assert "no other node group" in said
        await at.types("gnt-group add far")
        await at.types("gnt-group assign-nodes --force far node3")
        await at.types("gnt-instance change-group --to far web1")  # as in scripts
        home = cluster.config.instance("web1").primary_node
        assert cluster.config.node(home).name == "node3"
        assert "is in node group far already" in await at.refused(
            "gnt-instance change-group -f --to far web1"
        )
    await cluster.stop()


async def test_a_batch(at: Desk, tmp_path: Path) -> None:
    file = tmp_path / "batch.json"
    new = [
        {"name": f"b{n}", "disk_template": "file", "disks": [{"size": "64M"}]}
        for n in range(2)
    ]
    file.write_text(json.dumps([*new, {"name": "web1", "disk_template": "diskless"}]))
    screen = await at.screen(f"gnt-instance batch-create {file}")
    assert screen.status == 1
    assert "instance web1 exists already" in screen.err
    assert at.cluster.config.instance("b0").disks
    assert at.cluster.config.instance("b1").disks
    file.write_text("{")
    assert "is no JSON" in await at.refused(f"gnt-instance batch-create {file}")


# -- selectors -------------------------------------------------------------------------


async def test_selectors(at: Desk) -> None:
    """By node, tags and tags of nodes; several are asked about, and named."""
    await at.types("gnt-instance add-tags web2 prod")
    await at.types("gnt-node add-tags node1 rack1")

    async def up() -> str:
        out = await at.types(RUNNING)
        return " ".join(out.split())

    said = await at.refused("gnt-instance shutdown --primary node1")
    assert "Shut down the selected instances (1: web1)?" in said
    await at.types("gnt-instance shutdown --primary --force-multiple node1")
    assert await up() == "web2"
    await at.types("gnt-instance startup --pri-node-tags --force-multiple rack1")
    assert await up() == "web1 web2"
    await at.types("gnt-instance reboot --tags --force-multiple prod")
    await at.types("gnt-instance shutdown --tags --force-multiple prod none")
    assert await up() == "web1"
    assert "no instance is selected" in await at.refused(
        "gnt-instance shutdown --tags nobody"
    )
    assert "do not go together" in await at.refused(
        "gnt-instance shutdown --node --tags node1"
    )
    assert "node 'nodeX' is not known" in await at.refused(
        "gnt-instance shutdown --node nodeX"
    )
    assert "(1: web1)" in await at.refused("gnt-instance shutdown --node NODE1")
    assert "no tag is named" in await at.refused("gnt-instance shutdown --tags")
    assert "(3: web1, web2, web3)" in await at.refused("gnt-instance startup --all")


async def test_several_are_reinstalled_with_one_question(at: Desk) -> None:
    """The selector's says what is lost; with `--force-multiple` there is none."""
    said = await at.refused("gnt-instance reinstall --primary node3")
    assert "Remove all data of the disks of, and reinstall, the selected" in said
    await at.types("gnt-instance reinstall -o tiny --primary --force-multiple node3")
    assert at.cluster.config.instance("web3").os == "tiny"
    said = await at.refused("gnt-instance reinstall --force-multiple web3")
    assert "This will reinstall web3" in said


async def test_secondaries_are_selected(pairs: Desk) -> None:
    await pairs.types("gnt-instance startup --secondary --force-multiple node3")
    out = await pairs.types(RUNNING)
    assert out.split() == ["web1", "web2"]


async def test_lists_keep_the_order_of_their_operands(at: Desk) -> None:
    out = await at.types("gnt-instance list --no-headers -o name web3 web1 web2")
    assert out.split() == ["web3", "web1", "web2"]
    out = await at.types("gnt-node list --no-headers -o name,pinst_cnt node3 node1")
    assert [line.split()[0] for line in out.splitlines()] == ["node3", "node1"]
    out = await at.types("gnt-disk list --no-headers -o name spare 'root*'")
    assert out.split() == ["spare", "root1", "root3"]


async def test_a_cpu_mask_fits_instance_and_node(at: Desk) -> None:
    """As in Ganeti; the nodes of the harbour have eight processors."""
    for line, words in (
        ("gnt-instance modify -H cpu_mask=a-b web1", "'a-b' is not all, or numbers"),
        ("gnt-instance modify -H cpu_mask=999 web1", "node node1 has 0 to 7"),
        ("gnt-instance modify -H cpu_mask=0:1 web1", "for 2 virtual processors"),
        (
            "gnt-instance add -t diskless -n node2 -H kvm:cpu_mask=8 web9",
            "cpu_mask '8' names processor 8, and node node2 has 0 to 7",
        ),
        ("gnt-cluster modify -H kvm:cpu_mask=3-1", "'3-1' runs backwards"),
        ("gnt-os modify -H kvm:cpu_mask=x tiny", "cpu_mask 'x' is not all"),
        ("gnt-instance startup -H cpu_mask=x web3", "cpu_mask 'x' is not all"),
    ):
        assert words in await at.refused(line), line
    await at.types(r"gnt-instance modify -H 'cpu_mask=0-2\,5:all' -B vcpus=2 web1")
    said = await at.refused("gnt-instance modify -B vcpus=3 web1")
    assert "-B vcpus=2, or -H cpu_mask=all" in said


async def test_an_arrangement_of_processors_makes_up_all_of_them(at: Desk) -> None:
    await at.types("gnt-instance modify -B vcpus=2 -H cpu_sockets=2,cpu_cores=1 web1")
    for line, words in (
        ("-H cpu_cores=3", "cpu_sockets=2 * cpu_cores=3 makes 6 or a multiple"),
        ("-H cpu_threads=2", "2 virtual processors, and cpu_sockets=2 * cpu_cores=1 *"),
        ("-B vcpus=3", "3 virtual processors, and cpu_sockets=2 * cpu_cores=1 makes 2"),
        ("-H cpu_sockets=-1", "cpu_sockets is 0 to 255"),
    ):
        assert words in await at.refused(f"gnt-instance modify {line} web1"), line
    await at.types("gnt-instance modify -B vcpus=4 -H cpu_threads=2 web1")
    for line in (
        "gnt-cluster modify -H kvm:cpu_cores=3",
        "gnt-instance startup -H cpu_cores=3 web3",
    ):
        assert "cpu_cores=3 makes 3" in await at.refused(line), line
    await at.types("gnt-cluster modify -H kvm:cpu_cores=1")


async def test_a_pc_has_a_slot_for_each_disk_and_card(at: Desk) -> None:
    change = "gnt-instance modify -H machine_version=pc,kvm_pci_reservations"
    await at.types(f"{change}=31 web1")
    said = await at.refused("gnt-instance reboot web1")
    assert "web1 has 2 disks and 0 network cards, and a pc has 1 slot" in said
    for value in ("4", "32"):
        said = await at.refused(f"{change}={value} web1")
        assert "kvm_pci_reservations is 5 to 31" in said
    await at.types(f"{change}=30 web1")
    await at.types("gnt-instance reboot web1")


async def test_no_guest_is_stopped_that_could_not_start_again(at: Desk) -> None:
    """Its record came in with an import."""
    web1 = at.cluster.config.instance("web1")
    odd = successor(web1, 1.0, hvparams={"machine_version": "isapc"})
    await at.cluster.config_store.commit(Change((odd,)))
    for line in (
        "gnt-instance reboot web1",
        "gnt-instance failover -f -n node2 web1",
        "gnt-backup export -n node2 web1",
        "gnt-backup export --long-sleep -n node2 web1",
    ):
        assert "not a version of pc or q35" in await at.refused(line), line
    listed = "gnt-instance list --no-headers -o status web1"
    assert await at.types(listed) == "running\n"


# -- OS definitions --------------------------------------------------------------------


async def test_what_an_os_gives_its_instances(at: Desk) -> None:
    takes_anything(at)
    await at.types("gnt-os modify -H kvm:boot_order=network tiny")
    await at.types("gnt-os modify -O mirror=local --os-parameters-private k=v tiny")
    await at.types("gnt-instance reinstall -f -o tiny web3")
    _, told = scripts(at, "node3")[-1]
    assert (told["OSP_MIRROR"], told["OSP_K"]) == ("local", "v")
    (shown,) = yaml.safe_load(await at.types("gnt-instance info web3"))
    assert shown["Hypervisor parameters"]["boot_order"] == "default (network)"
    await at.types("gnt-os modify -O -mirror tiny")
    assert "mirror" not in at.cluster.config.cluster.osparams.get("tiny", {})


async def test_an_os_is_hidden_or_blacklisted(at: Desk) -> None:
    assert await at.types("gnt-os list --no-headers") == "tiny\n"
    await at.types("gnt-os modify --hidden yes tiny")
    assert await at.types("gnt-os list --no-headers") == ""
    await at.types("gnt-os modify --hidden no --blacklisted yes tiny")
    assert await at.types("gnt-os list --no-headers") == ""
    told = yaml.safe_load(await at.types("gnt-os info tiny"))["tiny"]
    assert (told["hidden"], told["blacklisted"]) == (False, True)
    line = "gnt-instance add -t file -s 64M -n node2 -o tiny web9"
    assert "'tiny' is blacklisted" in await at.refused(line)
    await at.types("gnt-os modify --blacklisted no tiny")
    await at.types(line)
    assert "nothing to modify" in await at.refused("gnt-os modify tiny")
