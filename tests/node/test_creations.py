# SPDX-License-Identifier: BSD-2-Clause
"""Taking back a create: only what the node made is destroyed, whatever happened."""

import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.errors import CommandFailed, Exists, Failed, Stale, WrongState
from moorage.model import Disk
from moorage.model.change import encode
from moorage.node.agent import Agent
from moorage.node.extensions.providers import Providers
from moorage.node.local_host import LocalMachine
from moorage.node.machine.images import Images
from moorage.storage import Command
from moorage.testing.cluster import SimCluster
from moorage.units import Mib

DISK = Disk(
    uuid="d1",
    name="data",
    dev_type="ext",
    logical_id=("byname", "11.ext.disk0"),
    size=Mib(4),
    params={"provider": "byname"},
)
HEAD = '#!/bin/sh\nv="$EXTP_DIR/${VOL_CNAME:-$VOL_NAME}"\n'
SCRIPTS = {
    "create": '[ ! -e "$v" ] || { echo exists; exit 1; }; echo new >"$v"\n'
    'truncate -s 4M "$v"',
    "remove": 'rm -f "$v"',
    "attach": '[ -e "$v" ] || { echo gone; exit 1; }; printf "\\nkvm:file:$v"',
    "detach": "true",
    "grow": "true",
    "setinfo": "true",
    "verify": "true",
    "snapshot": 'cp "$v" "$EXTP_DIR/$VOL_SNAPSHOT_NAME"',
}
"""A provider of the kind that knows a volume by the name of its disk."""


class Node:
    """An agent, real scripts, and a storage that other clusters use, too."""

    def __init__(self, top: Path, name: str = "node1") -> None:
        self.name, self.top = name, top
        self.storage = top / "storage"
        provider = top / "extstorage/byname"
        provider.mkdir(parents=True, exist_ok=True)
        self.storage.mkdir(parents=True, exist_ok=True)
        for script, text in SCRIPTS.items():
            (provider / script).write_text(HEAD + text + "\n")
            (provider / script).chmod(0o755)
        (provider / "parameters.list").write_text("dir where\n")
        self.provider = provider
        self.disk = replace(
            DISK, params={"provider": "byname", "dir": f"{top}/storage"}
        )
        self.notes: list[str] = []
        self.boot()

    def boot(self) -> None:
        listed = self.top / "file-storage-paths"
        listed.write_text(f"{self.top}/files\n")
        images = Images(self.name, listed)
        extstorage = [self.provider.parent]
        self.machine = LocalMachine(self.top / "log", Providers(extstorage), [], images)
        self.agent = Agent(self.name, self.top / "run", self.machine, {})

    async def do(self, verb: str, disk: Disk | None = None, **more: Any) -> Any:
        where = {"file_storage_dir": f"{self.top}/files"}
        args = {"disk": encode(disk or self.disk), "settings": where}
        return await self.agent.handle(f"disk.{verb}", args | more, 1, self._report)

    def _report(self, _done: int, _total: int, _unit: str, note: str) -> None:
        self.notes.append(note)

    def volumes(self) -> dict[str, str]:
        return {
            path.name: path.read_text().rstrip("\0") for path in self.storage.iterdir()
        }

    def records(self) -> list[Path]:
        return list((self.top / "run/makings").iterdir())


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


async def test_what_was_made_is_removed(node: Node) -> None:
    await node.do("create")
    assert node.volumes() == {"data": "new\n"}
    node.boot()
    for _ in range(2):
        await node.do("unmake")
    assert (node.volumes(), node.records(), node.notes) == ({}, [], [])


async def test_what_never_began_is_left_alone(node: Node) -> None:
    (node.storage / "data").write_text("another cluster's\n")
    await node.do("unmake")
    assert node.volumes() == {"data": "another cluster's\n"}


async def test_what_the_storage_refused_to_make_is_left_alone(node: Node) -> None:
    (node.storage / "data").write_text("another cluster's\n")
    with pytest.raises(CommandFailed, match="exists"):
        await node.do("create")
    node.boot()
    await node.do("unmake")
    assert node.volumes() == {"data": "another cluster's\n"}
    (note,) = node.notes
    assert note.startswith("Warning: the storage would not make volume 11.ext.disk0;")
    assert node.records() == []


async def test_a_second_attempt_does_not_disown_the_first(node: Node) -> None:
    await node.do("create")
    with pytest.raises(CommandFailed, match="exists"):
        await node.do("create")
    await node.do("unmake")
    assert node.volumes() == {}


async def interrupted(node: Node, verb: str, disk: Disk | None = None, **more: Any):
    """Let the agent die while a script runs."""

    async def die(command: Command, limit: float, *more: Any) -> Any:
        del limit, more
        if command.log:
            raise KeyboardInterrupt
        return await LocalMachine.run(node.machine, command, 9)

    node.machine.run = die  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        await node.do(verb, disk, **more)
    node.boot()


async def test_what_was_interrupted_may_be_another_ones(node: Node) -> None:
    (node.storage / "data").write_text("another cluster's\n")
    await interrupted(node, "create")
    for _ in range(3):
        with pytest.raises(Failed, match="nobody can tell whether the volume there is"):
            await node.do("unmake")
    assert node.volumes() == {"data": "another cluster's\n"}
    await node.do("remove")  # a person has looked
    assert node.records() == []


async def made_and_died(node: Node, disk: Disk | None = None) -> None:
    """Let the agent die when the volume is made, and not noted yet."""

    async def die(command: Command, limit: float, *more: Any) -> Any:
        told = await LocalMachine.run(node.machine, command, limit, *more)
        if command.argv[0].endswith(("/create", "truncate")):
            raise KeyboardInterrupt
        return told

    node.machine.run = die  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        await node.do("create", disk)
    node.boot()


async def test_a_refusal_after_an_interruption_proves_nothing(node: Node) -> None:
    """The master asks again: what is in the way may be the first attempt's own."""
    await made_and_died(node)
    with pytest.raises(CommandFailed, match="exists"):
        await node.do("create")
    with pytest.raises(Failed, match="nobody can tell whether the volume there is"):
        await node.do("unmake")
    assert node.volumes() == {"data": "new\n"}


async def test_an_interruption_after_a_refusal_is_no_refusal(node: Node) -> None:
    script = (node.provider / "create").read_text()
    (node.provider / "create").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(CommandFailed):
        await node.do("create")
    (node.provider / "create").write_text(script)
    await made_and_died(node)
    with pytest.raises(Failed, match="nobody can tell whether the volume there is"):
        await node.do("unmake")


async def test_a_file_whose_second_attempt_fails_goes(node: Node) -> None:
    path = node.top / "files/web/v"
    disk = replace(FILE, logical_id=("loop", str(path)))
    path.parent.parent.mkdir()
    await made_and_died(node, disk)
    path.write_bytes(b"h")  # half of it was on the disk

    with pytest.raises(Failed, match="is not overwritten"):
        await node.do("create", disk)
    node.boot()
    await node.do("unmake", disk)
    assert not path.exists()


async def test_what_an_agent_of_before_made_anew_is_not_taken_back(node: Node) -> None:
    """It noted as its own what a script had reused."""
    await node.do("create")
    node.boot()
    reused = replace(node.disk, params=node.disk.params | {"reuse_data": "True"})
    await node.do("unmake", reused)
    assert node.volumes() == {"data": "new\n"}


@pytest.mark.parametrize("here", [False, True])
async def test_what_was_seen_and_removed_is_not_missed_by_who_asks_again(
    node: Node, here: bool
) -> None:
    """Whether this node made it, or another one."""
    if here:
        await node.do("create")
    else:
        (node.storage / "data").write_text("new\n")

    async def run_and_die(command: Command, limit: float, *more: Any) -> Any:
        told = await LocalMachine.run(node.machine, command, limit, *more)
        if command.argv[0].endswith("/remove"):
            raise KeyboardInterrupt
        return told

    node.machine.run = run_and_die  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        await node.do("remove", sought=True)
    assert node.volumes() == {}
    for _ in range(2):  # after the crash, and when the answer was lost
        node.boot()
        await node.do("remove", sought=True)
    await node.do("create", replace(node.disk, uuid="d2"))
    await node.do("remove", replace(node.disk, uuid="d2"))
    with pytest.raises(WrongState, match="does not see the volume of disk data: "):
        await node.do("remove", sought=True)


async def test_an_interrupted_volume_without_a_name_is_nobody_elses(node: Node) -> None:
    nameless = replace(node.disk, name=None)
    await interrupted(node, "create", nameless)
    (node.storage / nameless.volume).write_text("half")
    await node.do("unmake", nameless)
    assert (node.volumes(), node.records()) == ({}, [])


async def test_a_script_that_was_killed_is_no_refusal(node: Node) -> None:
    (node.provider / "create").write_text("#!/bin/sh\nkill -9 $$\n")
    with pytest.raises(CommandFailed, match="signal 9"):
        await node.do("create")
    with pytest.raises(Failed, match="nobody can tell"):
        await node.do("unmake")


async def test_a_damaged_record_destroys_nothing(node: Node) -> None:
    (node.storage / "data").write_text("another cluster's\n")
    await interrupted(node, "create")
    (record,) = node.records()
    record.write_bytes(b"")
    node.boot()
    (node.storage / "data").write_text("another cluster's\n")
    with pytest.raises(Failed, match="nobody can tell"):
        await node.do("unmake")
    assert node.volumes() == {"data": "another cluster's\n"}


async def test_a_damaged_record_is_never_forgotten_as_one_of_no_disk(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new master asks what is old: an undo must still hear that it was begun."""
    monkeypatch.setattr("moorage.node.verbs.membership._YOUNG", -60.0)
    await interrupted(node, "create")
    (record,) = node.records()
    record.write_bytes(b"")
    assert await node.agent.handle("objects.old", {}, 1, node._report) == ()
    await node.agent.handle("objects.forget", {"objects": [""]}, 1, node._report)
    with pytest.raises(Failed, match="nobody can tell"):
        await node.do("unmake")


@pytest.mark.parametrize("interruption", [False, True])
async def test_the_namesake_of_a_snapshot_stays(node: Node, interruption: bool) -> None:
    """The copy was asked for by its volume's name, and is removed by that alone."""
    await node.do("create")
    (node.storage / "copy").write_text("another cluster's\n")
    copy = replace(node.disk, uuid="d2", name="copy", logical_id=("byname", "22.snap"))
    if interruption:
        await interrupted(node, "snapshot", name="22.snap", to=4)
        (node.storage / "22.snap").write_text("half")
    else:
        await node.do("snapshot", name="22.snap", to=4)
    assert "22.snap" in node.volumes()
    await node.do("unmake", copy)
    assert node.volumes() == {"copy": "another cluster's\n", "data": "new\n"}


FILE = Disk(
    uuid="f1",
    name="image",
    dev_type="file",
    logical_id=("loop", "to be set"),
    size=Mib(1),
)


@pytest.mark.parametrize("size", [0, 1, 2])
async def test_a_file_that_was_there_before_stays(node: Node, size: int) -> None:
    """It is neither taken for its own nor extended, whatever its size."""
    path = node.top / "files/web/v"
    disk = replace(FILE, logical_id=("loop", str(path)))
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x" * (size << 20))
    with pytest.raises(Exists, match="it is not overwritten"):
        await node.do("create", disk)
    await node.do("unmake", disk)
    assert path.read_bytes() == b"x" * (size << 20)


async def test_a_file_that_was_begun_goes(node: Node) -> None:
    path = node.top / "files/web/v"
    disk = replace(FILE, logical_id=("loop", str(path)))
    path.parent.parent.mkdir()

    async def die(command: Command, limit: float, *more: Any) -> Any:
        if command.argv[0] == "truncate":
            path.touch()
            raise KeyboardInterrupt
        return await LocalMachine.run(node.machine, command, limit, *more)

    node.machine.run = die  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        await node.do("create", disk)
    node.boot()
    await node.do("unmake", disk)
    assert not path.exists()


async def test_a_file_whose_directory_is_missing_was_not_made(node: Node) -> None:
    disk = replace(FILE, logical_id=("loop", f"{node.top}/files/web/v"))
    with pytest.raises(Failed, match="there is no directory"):
        await node.do("create", disk)
    await node.do("unmake", disk)
    assert node.notes == []


async def test_what_the_cluster_forgot_is_forgotten(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    await node.do("create", replace(node.disk, epoch=2))
    gone = {"objects": ["d1"]}
    assert await node.agent.handle("objects.old", {}, 1, node._report) == ()
    await node.agent.handle("objects.forget", gone, 1, node._report)
    assert len(node.records()) == 1  # too young: the master may not know of it yet
    monkeypatch.setattr("moorage.node.verbs.membership._YOUNG", -60.0)
    assert await node.agent.handle("objects.old", {}, 1, node._report) == ("d1",)
    await node.agent.handle("objects.forget", {"objects": ["d2"]}, 1, node._report)
    assert len(node.records()) == 1
    with pytest.raises(Stale, match="is at epoch 2"):
        await node.do("remove")
    await node.agent.handle("objects.forget", gone, 1, node._report)
    assert node.records() == []
    assert [one.name for one in (node.top / "run/fence").iterdir()] == ["term"]


async def test_a_young_volume_of_an_old_disk_is_remembered(node: Node) -> None:
    await node.do("create")
    (old,) = node.records()
    os.utime(old, (1, 1))
    await node.do("snapshot", name="copy", to=4)
    gone = {"objects": ["d1"]}
    await node.agent.handle("objects.forget", gone, 2, node._report)
    (left,) = node.records()
    assert left != old


async def test_a_record_that_cannot_be_read_is_not_forgotten(node: Node) -> None:
    """Nobody can tell whose it is: its disk may be there still."""
    await node.do("create")
    (record,) = node.records()
    record.write_bytes(b"")
    os.utime(record, (1, 1))
    told = await node.agent.handle("objects.old", {}, 1, node._report)
    await node.agent.handle("objects.forget", {"objects": told}, 1, node._report)
    assert node.records() == [record]
    with pytest.raises(Failed, match="nobody can tell whether the volume"):
        await node.do("unmake")


# -- as a whole ----------------------------------------------------------------------


async def test_a_failed_disk_add_leaves_the_others_volume(tmp_path: Path) -> None:
    cluster = await SimCluster.start(tmp_path / "c")
    node = Node(tmp_path / "n")
    (node.storage / "data").write_text("another cluster's\n")
    for one in cluster.nodes.nodes.values():
        one.machine = node.machine  # type: ignore[assignment]
        one.boot()
    add = {
        "disk_template": "ext",
        "provider": "byname",
        "size": 4,
        "params": {"dir": f"{node.storage}"},
    }
    job = await cluster.finished(
        await cluster.submit("OP_DISK_ADD", name="data", **add)
    )
    (op,) = job.ops
    assert "exists" in op.error["message"]
    assert any("removes nothing" in str(entry[3]) for entry in op.log)
    assert node.volumes() == {"data": "another cluster's\n"}
    assert not list(cluster.config.all(Disk))
    await cluster.run("OP_DISK_ADD", name="other", **add)
    assert node.volumes() == {"data": "another cluster's\n", "other": "new\n"}
    await cluster.stop()
