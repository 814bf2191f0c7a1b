# SPDX-License-Identifier: BSD-2-Clause
"""What the scripts of a provider get to see, action by action, and in which order."""

from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pytest

from moorage.model import Instance
from moorage.storage import Command
from moorage.testing.cluster import SimCluster

NEW = {
    "disk_template": "ext",
    "provider": "san",
    "size": 1024,
    "name": "data",
    "params": {"tier": "ssd"},
}


class Ran(NamedTuple):
    """One script that ran."""

    node: str
    script: str
    env: dict[str, str]
    command: Command


class Story(list[Ran]):
    """Every script of every node, in order."""

    def told(self, *scripts: str) -> list[str]:
        """Return ``node script`` of each, with the way a volume was opened."""
        return [
            " ".join(
                [one.node, one.script, *filter(None, [one.env.get(_HOW, "")])]
            ).strip()
            for one in self
            if not scripts or one.script in scripts
        ]

    def last(self, script: str) -> Ran:
        return [one for one in self if one.script == script][-1]


_HOW = "VOL_OPEN_EXCLUSIVE"
_WORDS = {"verify": ("parameters",)}
"""Arguments: what Ganeti's manual says that verify will get one day."""


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await SimCluster.start(tmp_path / "nodes")
    yield cluster
    await cluster.stop()


@pytest.fixture
def story(cluster: SimCluster) -> Story:
    found = Story()

    def watch(node: str, command: Command) -> bool:
        program = PurePosixPath(command.argv[0])
        if "extstorage" in program.parts:
            found.append(Ran(node, program.name, dict(command.env), command))
        return False

    for node in cluster.nodes.nodes.values():
        node.machine.refuse = watch
    return found


async def running(cluster: SimCluster, *disks: dict[str, Any], **more: Any) -> None:
    fields: dict[str, Any] = {"disk_template": "ext", "pnode": "node1"} | more
    if not disks:
        fields["disk_template"] = "diskless"
    await cluster.run(
        "OP_INSTANCE_CREATE", instance_name="web", disks=list(disks), **fields
    )


async def everything(cluster: SimCluster) -> None:
    """Let a disk live from its creation to its end."""
    await running(cluster)
    await cluster.run("OP_DISK_ADD", **NEW)
    await cluster.run("OP_DISK_ATTACH", disk="data", instance_name="web")
    await cluster.run("OP_DISK_GROW", disk="data", amount=512)
    await cluster.run("OP_DISK_SNAPSHOT", disk="data", new_name="copy")
    await cluster.run("OP_INSTANCE_FAILOVER", instance_name="web", target_node="node2")
    await cluster.run("OP_DISK_DETACH", disk="data")
    await cluster.run("OP_DISK_REMOVE", disk="data")


@pytest.mark.requirement("S0-25", "S0-26", "S0-28", "S0-29", "S0-57")
async def test_each_step_of_a_life_is_a_script(
    cluster: SimCluster, story: Story
) -> None:
    await running(cluster)
    await cluster.run("OP_DISK_ADD", **NEW)
    assert story.told() == [
        *("node1 verify", "node1 create"),
        *("node1 attach", "node1 open True", "node1 setinfo"),
        "node1 detach",
    ]
    story.clear()
    await cluster.run("OP_DISK_ATTACH", disk="data", instance_name="web")
    assert story.told() == ["node1 attach", "node1 open True"]
    await cluster.run("OP_DISK_DETACH", disk="data")
    assert story.told()[2:] == ["node1 detach"]
    await cluster.run("OP_DISK_REMOVE", disk="data")
    assert story.told()[3:] == ["node1 detach", "node1 remove"]


@pytest.mark.requirement("S0-36", "S0-37", "S0-50")
async def test_no_script_gets_an_argument_but_verify(
    cluster: SimCluster, story: Story
) -> None:
    await everything(cluster)
    assert {one.script for one in story} == {
        *("verify", "create", "attach", "open", "setinfo", "grow", "snapshot"),
        *("close", "detach", "remove"),
    }
    for one in story:
        assert one.command.argv[1:] == _WORDS.get(one.script, ())
        assert one.command.cwd == str(PurePosixPath(one.command.argv[0]).parent)


@pytest.mark.requirement("S0-38", "S0-41", "S0-42", "S0-44", "S0-45")
async def test_every_script_gets_names_and_parameters(
    cluster: SimCluster, story: Story
) -> None:
    await running(cluster)
    uuid = await cluster.run("OP_DISK_ADD", **NEW)
    volume = cluster.config.disk("data").volume
    await cluster.run("OP_DISK_ATTACH", disk="data", instance_name="web")
    await cluster.run("OP_DISK_GROW", disk="data", amount=512)
    await cluster.run("OP_DISK_SNAPSHOT", disk="data", new_name="copy")
    await cluster.run("OP_DISK_DETACH", disk="data")
    await cluster.run("OP_DISK_REMOVE", disk="data")
    for one in story:
        assert one.env["VOL_NAME"] == volume
        assert one.env["VOL_UUID"] == uuid
        assert one.env["VOL_CNAME"] == "data"
        assert one.env["EXTP_PROVIDER"] == "san"
        assert one.env["EXTP_TIER"] == "ssd"
    assert volume.endswith(".ext.disk0")


@pytest.mark.requirement("S0-44")
async def test_a_disk_without_a_name_has_none_for_its_scripts(
    cluster: SimCluster, story: Story
) -> None:
    await running(cluster)
    story.clear()
    await cluster.run("OP_DISK_ADD", **{k: v for k, v in NEW.items() if k != "name"})
    assert len(story.told()) > 3
    assert not any("VOL_CNAME" in one.env for one in story)


@pytest.mark.requirement("S0-39", "S0-40", "S0-43", "S0-47", "S0-48", "S0-49")
async def test_each_variable_is_for_its_scripts_alone(
    cluster: SimCluster, story: Story
) -> None:
    await everything(cluster)
    await cluster.run(
        "OP_INSTANCE_SET_PARAMS",
        instance_name="web",
        disks=[["add", "-1", {"size": 8, "dev_type": "ext", "provider": "san"}]],
    )
    only = {
        "VOL_SIZE": {"create", "grow"},
        "VOL_NEW_SIZE": {"grow"},
        "VOL_METADATA": {"setinfo"},
        "VOL_SNAPSHOT_NAME": {"snapshot"},
        "VOL_SNAPSHOT_SIZE": {"snapshot"},
        "VOL_OPEN_EXCLUSIVE": {"open"},
    }
    for variable, scripts in only.items():
        assert {one.script for one in story if variable in one.env} == scripts


@pytest.mark.requirement("S0-27", "S0-40")
async def test_grow_gets_the_old_and_the_new_size(
    cluster: SimCluster, story: Story
) -> None:
    await cluster.run("OP_DISK_ADD", **NEW)
    story.clear()
    await cluster.run("OP_DISK_GROW", disk="data", amount=512)
    env = story.last("grow").env
    assert (env["VOL_SIZE"], env["VOL_NEW_SIZE"]) == ("1024", "1536")
    assert story.told() == [
        *("node1 attach", "node1 open True", "node1 grow"),
        *("node1 attach", "node1 detach"),  # how large it is by now
    ]


@pytest.mark.requirement("S0-30", "S0-46")
async def test_a_new_disk_is_noted_with_its_instance(
    cluster: SimCluster, story: Story
) -> None:
    await running(cluster, {"size": 64, "provider": "san"})
    assert story.last("setinfo").env["VOL_METADATA"] == "originstname+web"
    assert story.told() == [
        *("node1 verify", "node1 create"),
        *("node1 attach", "node1 open True", "node1 setinfo"),
    ]


@pytest.mark.requirement("S0-33", "S0-34", "S0-53", "S0-66")
async def test_a_provider_of_the_first_contract_stays_valid(
    cluster: SimCluster, story: Story
) -> None:
    await running(cluster, {"size": 64, "provider": "plainsan"})
    await cluster.run("OP_INSTANCE_MIGRATE", instance_name="web", target_node="node2")
    await cluster.run("OP_INSTANCE_FAILOVER", instance_name="web", target_node="node3")
    await cluster.run("OP_INSTANCE_REMOVE", instance_name="web")
    assert {one.script for one in story} == {
        *("verify", "create", "attach", "setinfo", "detach", "remove")
    }


@pytest.mark.requirement("S0-49", "S0-55", "S0-56")
async def test_the_order_in_a_migration(cluster: SimCluster, story: Story) -> None:
    await running(cluster, {"size": 64, "provider": "san"})
    story.clear()
    await cluster.run("OP_INSTANCE_MIGRATE", instance_name="web", target_node="node2")
    assert story.told() == [
        "node1 open False",
        "node2 attach",
        "node2 open False",
        "node1 close",
        "node2 attach",
        "node2 open True",
        "node1 detach",
    ]


@pytest.mark.requirement("S0-55", "S0-56")
async def test_the_order_in_a_failover(cluster: SimCluster, story: Story) -> None:
    await running(cluster, {"size": 64, "provider": "san"})
    story.clear()
    await cluster.run("OP_INSTANCE_FAILOVER", instance_name="web", target_node="node2")
    assert story.told() == [
        "node1 close",
        "node1 detach",
        "node2 attach",
        "node2 open True",
    ]


@pytest.mark.requirement("S0-26", "S0-42")
async def test_removing_an_instance_removes_its_volumes_with_their_parameters(
    cluster: SimCluster, story: Story
) -> None:
    await running(cluster, {"size": 64, "provider": "san", "tier": "hdd"})
    story.clear()
    await cluster.run("OP_INSTANCE_REMOVE", instance_name="web")
    assert story.told() == ["node1 detach", "node1 remove"]
    assert story.last("remove").env["EXTP_TIER"] == "hdd"
    assert cluster.nodes.san.volumes == {}


@pytest.mark.requirement("S0-50", "S0-52", "S0-57")
@pytest.mark.parametrize("script", ["create", "attach", "open"])
async def test_a_script_that_fails_fails_the_job_in_ganetis_words(
    cluster: SimCluster, script: str
) -> None:
    for node in cluster.nodes.nodes.values():
        node.machine.refuse = lambda _, command: command.argv[0].endswith(f"/{script}")
    error = await cluster.refused(
        "OP_INSTANCE_CREATE",
        instance_name="web",
        disk_template="ext",
        pnode="node1",
        disks=[{"size": 64, "provider": "san"}],
    )
    assert str(error).startswith(
        f"External storage's {script} script failed (exited with exit code 1)"
    )
    assert (cluster.nodes.san.volumes, cluster.nodes.san.attached) == ({}, {})
    assert not cluster.config.knows(Instance, "web")


@pytest.mark.requirement("S0-51", "S0-71", "S0-73")
@pytest.mark.parametrize(
    ("printed", "sentence"),
    [
        ("\n", "printed neither a device nor a URI"),
        ("", "printed neither a device nor a URI"),
        ("/dev/none\n", "/dev/none is not a block device"),
        ("\nxen:x\n", "Userspace access is not supported by the 'san' ExtStorage"),
        ("\nkvm:\n", "printed an empty URI for hypervisor 'kvm'"),
    ],
)
async def test_what_attach_prints_is_read_with_care(
    cluster: SimCluster, printed: str, sentence: str
) -> None:
    san, answer = cluster.nodes.san, cluster.nodes.san.answer

    def printing(node: str, command: Command) -> Any:
        output = answer(node, command)
        if command.argv[0].endswith("/attach"):
            return type(output)(printed)
        return output

    new = NEW | {"access": "userspace"} if "xen" in printed else NEW
    await running(cluster)
    await cluster.run("OP_DISK_ADD", **new)
    san.answer = printing
    error = await cluster.refused("OP_DISK_ATTACH", disk="data", instance_name="web")
    assert sentence in str(error)
    assert cluster.config.instance("web").disks == ()
    assert san.attached == {}


@pytest.mark.requirement("S0-59", "S0-60", "S0-61")
async def test_disks_of_one_instance_from_different_providers(
    cluster: SimCluster, story: Story
) -> None:
    await running(
        cluster,
        {"size": 64, "provider": "san", "tier": "ssd"},
        {"size": 64, "provider": "plainsan"},
        {"size": 64, "provider": "usersan", "access": "userspace"},
    )
    told = await cluster.run("OP_INSTANCE_QUERY_DATA", instances=["web"])
    (web,) = told.values()
    ids = [disk["logical_id"] for disk in web["disks"]]
    assert [provider for provider, _ in ids] == ["san", "plainsan", "usersan"]
    assert all(volume.endswith(f".ext.disk{n}") for n, (_, volume) in enumerate(ids))
    created = [one.env for one in story if one.script == "create"]
    assert [env.get("EXTP_TIER") for env in created] == ["ssd", None, None]
    assert [env["EXTP_ACCESS"] for env in created] == [
        *("kernelspace", "kernelspace", "userspace")
    ]


@pytest.mark.requirement("S0-62")
async def test_force_accepts_what_a_provider_does_not_list(
    cluster: SimCluster, story: Story
) -> None:
    new = NEW | {"params": {"colour": "red"}}
    await cluster.run("OP_DISK_ADD", **new, force_params=True)
    assert story.last("create").env["EXTP_COLOUR"] == "red"


@pytest.mark.requirement("S0-38")
async def test_a_volume_keeps_its_name_whatever_its_disk_is_called(
    cluster: SimCluster, story: Story
) -> None:
    await everything(cluster)
    (copy,) = cluster.config.detached()
    before = copy.volume
    await cluster.run("OP_DISK_RENAME", disk="copy", new_name="other")
    await cluster.run("OP_DISK_ATTACH", disk="other", instance_name="web")
    assert cluster.config.disk("other").volume == before
    env = story.last("attach").env
    assert (env["VOL_NAME"], env["VOL_CNAME"]) == (before, before)


async def test_scripts_know_a_volume_by_the_name_that_it_was_made_with(
    cluster: SimCluster, story: Story
) -> None:
    """A provider that goes by that name would destroy another one's volume."""
    await cluster.run("OP_DISK_ADD", **NEW)
    await cluster.run("OP_DISK_RENAME", disk="data", new_name="theirs")
    error = await cluster.refused("OP_DISK_ADD", **NEW)
    assert "was made as 'data'" in str(error)
    uuid = await cluster.run("OP_DISK_SNAPSHOT", disk="theirs", new_name="monday")
    copy = cluster.config.disk(uuid).volume
    assert story.last("snapshot").env["VOL_SNAPSHOT_NAME"] == copy
    await cluster.run("OP_DISK_REMOVE", disk="monday")
    assert story.last("remove").env["VOL_CNAME"] == copy
    await cluster.run("OP_DISK_SET_PARAMS", disk="theirs", name="none")
    await cluster.run("OP_DISK_REMOVE", disk=cluster.config.detached()[0].uuid)
    assert story.last("remove").env["VOL_CNAME"] == "data"
    await cluster.run("OP_DISK_ADD", **NEW)


async def test_a_volume_that_was_made_without_a_name_gets_none(
    cluster: SimCluster, story: Story
) -> None:
    uuid = await cluster.run("OP_DISK_ADD", **{**NEW, "name": None})
    await cluster.run("OP_DISK_RENAME", disk=uuid, new_name="theirs")
    await cluster.run("OP_DISK_REMOVE", disk="theirs")
    assert "VOL_CNAME" not in story.last("remove").env
