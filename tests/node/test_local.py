# SPDX-License-Identifier: BSD-2-Clause
"""The real machine, as far as nobody needs root for it."""

import os
from pathlib import Path

import pytest

from moorage.errors import CommandFailed
from moorage.model import Device, Unit
from moorage.node.extensions.providers import Providers
from moorage.node.local_host import LocalMachine
from moorage.node.machine.images import Images
from moorage.node.verbs.context import drive
from moorage.storage import TEMPLATES, Command, Site
from moorage.units import Mib


@pytest.fixture
def machine(tmp_path: Path) -> LocalMachine:
    for name in ("ext/first", "os/tiny", "os-and-more"):
        (tmp_path / name).mkdir(parents=True)
    images = Images("node1", tmp_path / "file-storage-paths")
    paths = Providers([tmp_path / "ext"]), [tmp_path / "os"]
    return LocalMachine(tmp_path / "log", *paths, images)


def logs(tmp_path: Path) -> set[str]:
    found = (tmp_path / "log").rglob("*.log")
    return {f"{path.parent.name}/{path.name.rpartition('-')[0]}" for path in found}


async def test_logs_of_providers_and_systems_are_apart(
    machine: LocalMachine, tmp_path: Path
) -> None:
    for place in ("ext/first", "os/tiny", "os-and-more"):
        name = place.replace("/", "-")
        command = Command(("true",), cwd=str(tmp_path / place), log=name)
        await machine.run(command, 10)
    assert logs(tmp_path) == {
        *("extstorage/ext-first", "os/os-tiny", "extstorage/os-and-more")
    }


async def test_a_command_that_takes_too_long_is_ended(machine: LocalMachine) -> None:
    with pytest.raises(CommandFailed, match=r"did not end within 0\.1 s"):
        await machine.run(Command(("sleep", "60")), 0.1)


def test_providers_and_systems_are_found_where_they_are_looked_for(
    machine: LocalMachine,
) -> None:
    (provider,) = machine.providers()
    assert (provider.name, provider.problem[:20]) == ("first", "File 'create' under ")
    (system,) = machine.oses()
    assert system.name == "tiny"


def test_memory_is_that_of_the_machine(machine: LocalMachine) -> None:
    told = machine.memory()
    assert 0 < told.free <= told.total
    assert told.cpus > 0
    assert told.bootid


async def test_the_room_of_a_directory_is_that_of_its_file_system(
    machine: LocalMachine, tmp_path: Path
) -> None:
    async def room(directory: str) -> tuple[Unit, ...]:
        site = Site(node="n", settings={"file_storage_dir": directory})
        steps = TEMPLATES["file"](site).room()
        return await drive(steps, lambda command: machine.run(command, 60))

    (unit,) = await room(str(tmp_path))
    there = os.statvfs(tmp_path)
    assert (unit.template, unit.key) == ("file", str(tmp_path))
    assert unit.total == there.f_blocks * there.f_frsize >> 20
    assert unit.free is not None
    assert 0 <= unit.free <= unit.total
    (tmp_path / "plain file").touch()
    for missing in ("", f"{tmp_path}/none", f"{tmp_path}/plain file"):
        assert await room(missing) == ()


@pytest.mark.parametrize("path", ["/dev/null", "/nowhere", "/", "\0"])
async def test_what_is_neither_device_nor_file(
    machine: LocalMachine, path: str
) -> None:
    assert await machine.device(path) == Device()


async def test_a_file_has_a_size(machine: LocalMachine, tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(bytes(3 << 20))
    told = (await machine.device(str(path))).problem
    assert told.startswith(f"node node1 keeps no image files at {path}: its list ")
    (tmp_path / "file-storage-paths").write_text(f"{tmp_path}\n")
    assert await machine.device(str(path)) == Device(kind="file", size=Mib(3))
    (tmp_path / "link").symlink_to(path)
    assert "does not open" in (await machine.device(f"{tmp_path}/link")).problem
