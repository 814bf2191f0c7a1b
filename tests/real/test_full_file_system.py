# SPDX-License-Identifier: BSD-2-Clause
"""Image files on a file system that has no room for them."""

import asyncio
import subprocess
from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from moorage.errors import Failed
from moorage.model import Disk
from moorage.node.machine.commands import run
from moorage.node.verbs.context import drive
from moorage.storage import Command, Output, Site, Template, template_named
from moorage.units import Mib

pytestmark = pytest.mark.real


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Return a file system of 16 MiB."""
    at = tmp_path / "small"
    at.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", at], check=True)
    yield at
    subprocess.run(["umount", at], check=True)


@pytest.fixture
def file(small: Path) -> Template:
    return template_named("file")(
        Site(node="n", settings={"file_storage_dir": str(small)})
    )


def disk(small: Path, size: int) -> Disk:
    path = str(small / "web1/v.file.disk0")
    return Disk(
        uuid="u",
        dev_type="file",
        logical_id=("loop", path),
        size=Mib(size),
        params={"preallocate": True},
    )


def go(steps: Generator[Command, Output, Any], tmp_path: Path) -> Any:
    return asyncio.run(drive(steps, partial(run, log_dir=tmp_path, timeout=30)))


def test_a_disk_that_does_not_fit_is_not_made(
    file: Template, small: Path, tmp_path: Path
) -> None:
    with pytest.raises(Failed, match=r"no room|No space"):
        go(file.create(disk(small, 200)), tmp_path)
    assert not list(small.glob("web1/*"))


def test_a_disk_that_cannot_grow_stays_as_it_is(
    file: Template, small: Path, tmp_path: Path
) -> None:
    one = disk(small, 4)
    go(file.create(one), tmp_path)
    path = Path(one.volume)
    path.write_bytes(b"x" * (4 << 20))
    with pytest.raises(Failed, match=r"no room|No space"):
        go(file.grow(one, Mib(300)), tmp_path)
    assert path.read_bytes() == b"x" * (4 << 20)
    go(file.grow(one, Mib(8)), tmp_path)
    assert path.stat().st_size == 8 << 20


def test_nobody_is_told_of_a_disk_that_has_no_room(quay: Any) -> None:
    """By command: neither the record nor the guest may see more than there is."""
    shared = quay.path / "shared"
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "none", shared]
    subprocess.run(mount, check=True)
    try:
        add = "gnt-disk add -t sharedfile -D preallocate=yes -s"
        assert "no room" in quay.refused(f"{add} 200M pre")
        assert quay.ask("gnt-disk list -o name") == []
        quay.type(f"{add} 4M pre")
        assert "no room" in quay.refused("gnt-disk grow pre 300M")
        assert quay.ask("gnt-disk list -o name,size") == [{"name": "pre", "size": 4}]
        quay.type("gnt-disk grow pre 4M")
        (file,) = shared.glob("*/*.disk0")
        assert file.stat().st_size == 8 << 20
        quay.type("gnt-disk remove -f pre")
    finally:
        subprocess.run(["umount", shared], check=True)
