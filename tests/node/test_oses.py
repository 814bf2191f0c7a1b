# SPDX-License-Identifier: BSD-2-Clause
"""OS definitions: the scan, the environment, and a script that fails."""

from functools import partial
from pathlib import Path

import pytest

from moorage.errors import BadInput, CommandFailed, Failed, NotFound
from moorage.model import Nic, Os
from moorage.node.commands import run
from moorage.node.oses import (
    Install,
    OsDisk,
    command,
    create,
    environment,
    scan,
    usable,
)
from moorage.storage import Where
from moorage.units import Mib

SCRIPTS = ("create", "import", "export", "rename", "verify")


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
        command("create", usable([found]), Install(instance="web1", os="tiny"))


def test_the_first_directory_wins(tmp_path: Path) -> None:
    first = definition(tmp_path / "a" / "tiny")
    definition(tmp_path / "b" / "tiny")
    found = scan([tmp_path / "a", tmp_path / "b"])
    assert usable(found)["tiny"].path == str(first)


@pytest.mark.requirement("S0-65")
def test_a_script_is_told_all_about_disks_and_cards() -> None:
    install = Install(
        instance="web1",
        os="tiny",
        disks=(
            OsDisk(uuid="d0", size=Mib(64), where=Where(path="/dev/x", block=True)),
            OsDisk(
                uuid="d1",
                size=Mib(128),
                where=Where(uris={"kvm": "nbd:unix:/s"}),
                mode="ro",
                name="data",
            ),
            OsDisk(uuid="d2", size=Mib(8), where=Where(path="/srv/f")),
        ),
        nics=(
            Nic(
                uuid="n0",
                mac="aa:00:00:00:00:01",
                ip="192.0.2.1",
                nicparams={"mode": "bridged", "link": "br0"},
            ),
        ),
        osparams={"image": "/i", "empty": ""},
        again=True,
    )
    assert environment(install, "tiny", "small") == {
        "OS_API_VERSION": "20",
        "OS_NAME": "tiny",
        "INSTANCE_OS": "tiny",
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
    }


async def test_create_runs_in_its_directory_and_leaves_a_log(tmp_path: Path) -> None:
    definition(tmp_path / "os/tiny", create="pwd; echo $OS_VARIANT; echo $#")
    (tmp_path / "log").mkdir()
    go = partial(run, log_dir=tmp_path / "log", timeout=30)
    found = usable(scan([tmp_path / "os"]))
    await create(found, Install(instance="web1", os="tiny"), go)
    (log,) = (tmp_path / "log").glob("create-tiny-web1-*.log")
    assert log.read_text() == f"{tmp_path}/os/tiny\n\n0\n"


async def test_a_script_that_fails_is_quoted(tmp_path: Path) -> None:
    definition(tmp_path / "os/tiny", create="echo no room >&2; exit 7")
    go = partial(run, log_dir=tmp_path, timeout=30)
    found = usable(scan([tmp_path / "os"]))
    with pytest.raises(CommandFailed) as caught:
        await create(found, Install(instance="web1", os="tiny"), go)
    assert caught.value.message == (
        "OS create script failed (exited with exit code 7), "
        "last lines of output:\nno room"
    )


def test_variants() -> None:
    found = {"tiny": Os(name="tiny", path="/o/tiny", variants=("small", "large"))}

    def variant(name: str) -> str | None:
        ran = command("create", found, Install(instance="web1", os=name))
        return ran.env.get("OS_VARIANT")

    assert variant("tiny") == "small"
    assert variant("tiny+large") == "large"
    with pytest.raises(BadInput, match="no variant 'huge': it has small, large"):
        variant("tiny+huge")
    with pytest.raises(NotFound, match="OS 'gone' is not there"):
        variant("gone")
