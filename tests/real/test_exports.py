# SPDX-License-Identifier: BSD-2-Clause
"""Exports with the real programs: what is torn, tampered with, too large or killed."""

import json
import os
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.real

ADD = (
    "gnt-instance add -t sharedfile --disk 0:size=8M --disk 1:size=4M --no-install"
    " --no-start --no-nics -n node1"
)


def folder(town: Any, name: str) -> Path:
    return Path(town.path / "export" / "node1" / name)


def images(town: Any, name: str) -> list[Path]:
    return [Path(town.stage.disk(one)["logical_id"][1]) for one in town.disks(name)]


def filled(town: Any, name: str) -> list[str]:
    """Make an instance, write to its disks, and return their checksums."""
    town.type(f"{ADD} {name}")
    for image in images(town, name):
        with image.open("r+b") as file:
            file.write(os.urandom(1 << 20))
    return sums(images(town, name))


def sums(files: list[Path]) -> list[str]:
    return [sha256(one.read_bytes()).hexdigest() for one in files]


def test_what_comes_back_is_what_was_there(quay: Any) -> None:
    before = filled(quay, "web1")
    quay.type("gnt-backup export --compress web1")
    at = folder(quay, "web1")
    told = json.loads((at / "manifest.json").read_text())
    assert [dump["form"] for dump in told["dumps"]] == ["qcow2", "qcow2"]
    assert at.stat().st_mode & 0o077 == 0
    quay.type("gnt-backup verify web1")
    quay.type("gnt-backup import --src-dir web1 --disk 1:size=16M web2")
    new = images(quay, "web2")
    assert sums(new[:1]) == before[:1]
    assert new[1].stat().st_size == 16 << 20
    assert sha256(new[1].read_bytes()[: 4 << 20]).hexdigest() == before[1]
    quay.type("gnt-backup export --format ganeti web1")  # in the place of the other
    names = sorted(one.name for one in at.iterdir())
    assert names == ["config.ini", "disk0.raw", "disk1.raw", "manifest.json"]
    assert sums([at / "disk0.raw", at / "disk1.raw"]) == before
    (at / "manifest.json").unlink()  # as Ganeti would have it
    quay.type("gnt-backup import --src-dir web1 web3")
    assert sums(images(quay, "web3")) == before
    quay.type("gnt-backup remove -f web1")
    assert list(at.parent.iterdir()) == []


def test_a_dump_that_is_not_whole_is_not_restored(quay: Any) -> None:
    filled(quay, "web1")
    volumes = quay.stage.volumes()
    quay.type("gnt-backup export web1")
    dump = folder(quay, "web1") / "disk1.qcow2"
    kept = dump.read_bytes()
    for torn, said in (
        (kept[: len(kept) // 2], "bytes"),
        (kept[:-1] + bytes([kept[-1] ^ 1]), "checksum"),
        (b"", "bytes"),
    ):
        dump.write_bytes(torn)
        assert said in quay.refused("gnt-backup import --src-dir web1 web2")
        assert quay.stage.volumes() == volumes
    quay.refused("gnt-backup verify web1")
    dump.unlink()
    dump.symlink_to("/etc/shadow")
    assert "import" not in quay.refused("gnt-backup import --src-dir web1 web2")
    assert quay.stage.volumes() == volumes


def test_an_image_that_names_another_file_is_not_read(quay: Any) -> None:
    """Whoever can write a dump can write its manifest, too; root must not obey it."""
    filled(quay, "web1")
    quay.type("gnt-backup export web1")
    at = folder(quay, "web1")
    dump, secret = at / "disk1.qcow2", quay.path / "secret"
    secret.write_bytes(b"secret" * 100000)
    make = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", secret]
    subprocess.check_call([*make, dump, "4M"])
    told = json.loads((at / "manifest.json").read_text())
    told["dumps"][1] |= {"bytes": dump.stat().st_size, "sha256": sums([dump])[0]}
    (at / "manifest.json").write_text(json.dumps(told))
    said = quay.refused("gnt-backup import --src-dir web1 web2")
    assert "names another file" in said


def test_a_full_file_system_leaves_the_older_export(quay: Any) -> None:
    filled(quay, "web1")
    root = quay.path / "export" / "node1"
    root.mkdir(parents=True, exist_ok=True)
    subprocess.check_call(["mount", "-t", "tmpfs", "-o", "size=4m", "none", root])
    try:
        quay.type("gnt-backup export web1")
        kept = sorted((one.name, one.stat().st_mtime) for one in root.rglob("*"))
        said = quay.refused("gnt-backup export web1")
        assert "No space left" in said or "manifest" in said
        assert sorted((o.name, o.stat().st_mtime) for o in root.rglob("*")) == kept
        quay.type("gnt-backup verify web1")
    finally:
        subprocess.check_call(["umount", root])


def test_a_job_that_is_cancelled_ends_the_copying(quay: Any) -> None:
    filled(quay, "web1")
    image = images(quay, "web1")[0]
    image.write_bytes(os.urandom(image.stat().st_size))
    quay.type("gnt-backup export --rate 1M --submit web1")
    (*_, job) = [row["id"] for row in quay.ask("gnt-job list -o id")]
    draft = Path(f"{folder(quay, 'web1')}.new")
    while not (draft / "disk0.qcow2").exists():
        assert status(quay, job) in ("queued", "waiting", "running")
    quay.type(f"gnt-job cancel {job}")
    while (now := status(quay, job)) in ("running", "canceling"):
        pass
    assert now != "success"
    assert list(draft.parent.iterdir()) == []


def status(town: Any, job: int) -> str:
    (row,) = town.ask(f"gnt-job list -o status {job}")
    return str(row["status"])
