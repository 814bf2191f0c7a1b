# SPDX-License-Identifier: BSD-2-Clause
"""OS definitions: the scan, the environment, and a script that fails."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from moorage.errors import BadInput, CommandFailed, Failed, NotFound
from moorage.model import Disk, Nic, Os
from moorage.node.extensions.oses import (
    Install,
    OsDisk,
    command,
    environment,
    scan,
    usable,
    verify,
)
from moorage.node.machine.commands import run
from moorage.protocol import InstallSystem
from moorage.storage import Where
from moorage.units import Mib

SCRIPTS = ("create", "import", "export", "rename", "verify")


def asked(os: str, *disks: OsDisk, **more: Any) -> Install:
    fields = {"uuid": "", "name": "web1", "os": os} | more
    return Install(InstallSystem(**fields), "node1", disks)


def disk(uuid: str, size: int, **more: Any) -> Disk:
    where = {"dev_type": "file", "logical_id": ("loop", f"/{uuid}")}
    return Disk(uuid=uuid, size=Mib(size), **where, **more)


def definition(path: Path, create: str = "", **files: str) -> Path:
    path.mkdir(parents=True)
    for name in SCRIPTS:
        (path / name).write_text(f"#!/bin/sh\n{create}\n")
        (path / name).chmod(0o755)
    texts = {"ganeti_api_version": "20\n"} | files
    for name, content in texts.items():
        (path / name.replace("_list", ".list")).write_text(content)
    return path


def test_a_definition_is_read(tmp_path: Path) -> None:
    path = definition(
        tmp_path / "tiny",
        ganeti_api_version="15\n20\n",
        variants_list="# all\nsmall\n\nlarge # with tools\n",
        parameters_list="image  the image\n",
    )
    assert scan([tmp_path, tmp_path / "gone"]) == [
        Os(
            name="tiny",
            path=str(path),
            variants=("small", "large"),
            parameters={"image": "the image"},
        )
    ]


@pytest.mark.parametrize(
    ("file", "content", "problem"),
    [
        ("create", None, "File 'create' under path '{}' is missing"),
        ("ganeti_api_version", "five", "does not hold versions"),
        ("ganeti_api_version", "5\n", "found 5, want 10, 15, 20"),
        ("ganeti_api_version", None, "is missing (No such file or directory)"),
    ],
)
def test_what_is_wrong_is_said(
    tmp_path: Path, file: str, content: str | None, problem: str
) -> None:
    path = definition(tmp_path / "tiny")
    (path / file).unlink()
    if content is not None:
        (path / file).write_text(content)
    (found,) = scan([tmp_path])
    assert problem.format(path) in found.problem
    with pytest.raises(Failed, match="OS 'tiny' is not valid"):
        command("create", usable([found]), asked("tiny"))


def test_the_first_directory_wins(tmp_path: Path) -> None:
    first = definition(tmp_path / "a" / "tiny")
    definition(tmp_path / "b" / "tiny")
    found = scan([tmp_path / "a", tmp_path / "b"])
    assert usable(found)["tiny"].path == str(first)


@pytest.mark.requirement("S0-65")
def test_a_script_is_told_all_about_disks_and_cards() -> None:
    disks = (
        OsDisk(disk("d0", 64), Where(path="/dev/x", block=True)),
        OsDisk(
            disk("d1", 128, mode="ro", name="data"), Where(uris={"kvm": "nbd:unix:/s"})
        ),
        OsDisk(disk("d2", 8), Where(path="/srv/f")),
    )
    install = asked(
        "tiny+small",
        *disks,
        nics=(
            Nic(
                uuid="n0",
                mac="aa:00:00:00:00:01",
                ip="192.0.2.1",
                nicparams={"mode": "bridged", "link": "br0"},
            ),
        ),
        osparams={"image": "/i", "empty": "", "disk-layout": "lvm"},
        hvparams={"kernel_path": "", "acpi": False, "root_path": None},
        beparams={"maxmem": 256, "auto_balance": True},
        uuid="i0",
        ctime=1.5,
        mtime=2.5,
        secondaries=("node2", "node3"),
        again=True,
    )
    tiny = Os(name="tiny", path="/o/tiny", api=20)
    assert environment(install, tiny, "small") == {
        "OS_API_VERSION": "20",
        "OS_NAME": "tiny",
        "INSTANCE_OS": "tiny+small",
        "INSTANCE_UUID": "i0",
        "INSTANCE_CTIME": "1.5",
        "INSTANCE_MTIME": "2.5",
        "INSTANCE_PRIMARY_NODE": "node1",
        "INSTANCE_SECONDARY_NODES": "node2 node3",
        "INSTANCE_BE_MAXMEM": "256",
        "INSTANCE_BE_AUTO_BALANCE": "True",
        "INSTANCE_HV_KERNEL_PATH": "",
        "INSTANCE_HV_ACPI": "False",
        "OS_VARIANT": "small",
        "INSTANCE_NAME": "web1",
        "INSTANCE_REINSTALL": "1",
        "HYPERVISOR": "kvm",
        "DEBUG_LEVEL": "0",
        "DISK_COUNT": "3",
        "DISK_0_PATH": "/dev/x",
        "DISK_0_SIZE": "64",
        "DISK_0_ACCESS": "rw",
        "DISK_0_UUID": "d0",
        "DISK_0_FRONTEND_TYPE": "paravirtual",
        "DISK_0_BACKEND_TYPE": "block",
        "DISK_1_URI": "nbd:unix:/s",
        "DISK_1_SIZE": "128",
        "DISK_1_ACCESS": "ro",
        "DISK_1_UUID": "d1",
        "DISK_1_NAME": "data",
        "DISK_1_FRONTEND_TYPE": "paravirtual",
        "DISK_1_BACKEND_TYPE": "block",
        "DISK_2_PATH": "/srv/f",
        "DISK_2_SIZE": "8",
        "DISK_2_ACCESS": "rw",
        "DISK_2_UUID": "d2",
        "DISK_2_FRONTEND_TYPE": "paravirtual",
        "DISK_2_BACKEND_TYPE": "file:loop",
        "NIC_COUNT": "1",
        "NIC_0_MAC": "aa:00:00:00:00:01",
        "NIC_0_UUID": "n0",
        "NIC_0_IP": "192.0.2.1",
        "NIC_0_MODE": "bridged",
        "NIC_0_LINK": "br0",
        "NIC_0_BRIDGE": "br0",
        "NIC_0_FRONTEND_TYPE": "paravirtual",
        "OSP_IMAGE": "/i",
        "OSP_EMPTY": "",
        "OSP_DISK_LAYOUT": "lvm",
    }


async def test_create_runs_in_its_directory_and_leaves_a_log(tmp_path: Path) -> None:
    definition(tmp_path / "os/tiny", create="pwd; echo $OS_VARIANT; echo $#")
    (tmp_path / "log").mkdir()
    go = partial(run, log_dir=tmp_path / "log", timeout=120)
    found = usable(scan([tmp_path / "os"]))
    await go(command("create", found, asked("tiny")))
    (log,) = (tmp_path / "log").glob("create-tiny-web1-*.log")
    assert log.read_text() == f"{tmp_path}/os/tiny\n\n0\n"


async def test_a_script_that_fails_is_quoted(tmp_path: Path) -> None:
    definition(tmp_path / "os/tiny", create="echo no room >&2; exit 7")
    go = partial(run, log_dir=tmp_path, timeout=120)
    found = usable(scan([tmp_path / "os"]))
    with pytest.raises(CommandFailed) as caught:
        await go(command("create", found, asked("tiny")))
    assert caught.value.message == (
        "OS create script failed (exited with exit code 7), "
        "last lines of output:\nno room"
    )


def test_variants() -> None:
    found = {"tiny": Os(name="tiny", path="/o/tiny", variants=("small", "large"))}

    def variant(name: str) -> str | None:
        ran = command("create", found, asked(name))
        return ran.env.get("OS_VARIANT")

    assert variant("tiny") == "small"
    assert variant("tiny+large") == "large"
    with pytest.raises(BadInput, match="no variant 'huge': it has small, large"):
        variant("tiny+huge")
    with pytest.raises(NotFound, match="OS 'gone' is not there"):
        variant("gone")


@pytest.mark.parametrize(("api", "there"), [(10, ()), (15, ("small",)), (20, ())])
def test_what_a_definition_must_have_depends_on_its_api(
    tmp_path: Path, api: int, there: tuple[str, ...]
) -> None:
    """Neither ``verify`` nor parameters before version 20, no variants before 15."""
    path = definition(
        tmp_path / "old", ganeti_api_version=f"{api}\n5\n", variants_list="small\n"
    )
    (path / "verify").unlink()
    (found,) = scan([tmp_path])
    assert found.valid == (api < 20)
    if found.valid:
        assert (found.api, found.variants, found.parameters) == (api, there, {})
    else:
        assert "File 'verify'" in found.problem


def test_scripts_are_told_the_highest_common_version(tmp_path: Path) -> None:
    definition(tmp_path / "new", ganeti_api_version="10\n15\n99\n")
    found = usable(scan([tmp_path]))
    ran = command("create", found, asked("new"))
    assert ran.env["OS_API_VERSION"] == "15"


async def test_the_definition_itself_verifies_its_parameters(tmp_path: Path) -> None:
    definition(
        tmp_path / "os/tiny", create='[ "$1 $OSP_IMAGE" = "parameters /i" ] || exit 3'
    )
    go = partial(run, log_dir=tmp_path, timeout=120)
    found = usable(scan([tmp_path / "os"]))
    good = asked("tiny", osparams={"image": "/i"})
    await verify(found, good, go)
    with pytest.raises(CommandFailed, match="OS verify script failed"):
        await verify(found, asked("tiny"), go)


async def test_an_old_definition_verifies_nothing(tmp_path: Path) -> None:
    path = definition(tmp_path / "os/old", ganeti_api_version="15\n")
    (path / "verify").unlink()
    go = partial(run, log_dir=tmp_path, timeout=120)
    found = usable(scan([tmp_path / "os"]))
    await verify(found, asked("old", osparams={"any": 1}), go)


@pytest.mark.parametrize("osparams", [{"a=b": "x"}, {"a": "x\0y"}])
def test_what_no_variable_can_hold_is_refused(osparams: dict[str, str]) -> None:
    tiny = Os(name="tiny", path="/o/tiny")
    with pytest.raises(BadInput):
        environment(asked("tiny", osparams=osparams), tiny, "")
