# SPDX-License-Identifier: BSD-2-Clause
"""Listing the images of a directory where others may write, with real programs."""

from pathlib import Path

import pytest

from moorage.errors import Failed, MoorageError
from moorage.model import Volume
from moorage.node.extensions.providers import Providers
from moorage.node.local_host import LocalMachine
from moorage.node.machine.images import Images
from moorage.node.verbs.context import drive
from moorage.storage import Site, template_named
from moorage.units import Mib


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """Return a directory with one for images in it, which the node allows."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "file-storage-paths").write_text(f"{tmp_path}/shared\n")
    return tmp_path


async def listed(top: Path, root: Path) -> list[Volume]:
    images = Images("node1", top / "file-storage-paths")
    machine = LocalMachine(top / "log", Providers([]), [top / "os"], images)
    site = Site(node="node1", settings={"shared_file_storage_dir": str(root)})
    steps = template_named("sharedfile")(site).volumes({})
    return sorted(
        await drive(steps, lambda command: machine.run(command, 60)),
        key=lambda one: str(one.logical_id),
    )


async def test_regular_files_are_listed_and_no_link_is_followed(top: Path) -> None:
    root, outside = top / "shared", top / "keys"
    outside.mkdir()
    (outside / "ca.key").write_text("PRIVATE")
    (root / "web1").mkdir()
    (root / "web1" / "a b\nc").write_bytes(b"x" * (1 << 20))
    (root / "d").write_bytes(b"x")
    (root / "link").symlink_to(outside / "ca.key")
    (root / "away").symlink_to(outside)
    assert await listed(top, root) == [
        Volume(logical_id=("loop", f"{root}/d"), size=Mib(1)),
        Volume(logical_id=("loop", f"{root}/web1/a b\nc"), size=Mib(1)),
    ]


async def test_a_directory_behind_a_link_or_not_allowed_is_not_listed(
    top: Path,
) -> None:
    (top / "other").mkdir()
    (top / "shared" / "behind").symlink_to(top / "other")
    for root, words in (
        (top / "shared" / "behind", "a symbolic link"),
        (top / "other", "keeps no image files at"),
        (top / "shared" / "none", "no such file"),
    ):
        with pytest.raises(MoorageError, match=words):
            await listed(top, root)


async def test_a_long_list_is_read_to_its_end(top: Path) -> None:
    """More than the MiB that other answers may have: else volumes would be missing."""
    root = top / "shared"
    for number in range(5000):
        (root / f"{number:0>240}").touch()
    assert len(await listed(top, root)) == 5000


async def test_a_list_that_stops_in_the_middle_is_none(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = top / "tools"
    tools.mkdir()
    (tools / "find").write_text("#!/bin/sh\nprintf '1 a\\0'\nexit 1\n")
    (tools / "find").chmod(0o755)
    monkeypatch.setattr("moorage.node.machine.commands.PATH", f"{tools}:/usr/bin:/bin")
    with pytest.raises(Failed):
        await listed(top, top / "shared")
