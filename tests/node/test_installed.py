# SPDX-License-Identifier: BSD-2-Clause
"""What a real node finds of programs, modules of its kernel, and directories."""

import os
from pathlib import Path

import pytest

from moorage.model import Place
from moorage.node.extensions.providers import Providers
from moorage.node.local_host import LocalMachine
from moorage.node.machine.images import Images
from moorage.node.machine.installed import has_module, has_program
from moorage.node.verbs.context import drive
from moorage.storage import Site
from moorage.storage.templates.sharedfile import SharedFile

pytestmark = pytest.mark.requirement("S0-87")


def test_programs_are_found_on_the_path(tmp_path: Path) -> None:
    program = tmp_path / "lvs"
    program.write_text("#!/bin/sh\n")
    assert not has_program("lvs", str(tmp_path))
    program.chmod(0o755)
    assert has_program("lvs", str(tmp_path))
    assert not has_program("lvcreate", str(tmp_path))
    assert has_program("sh")


def test_modules_are_loaded_or_built_in_or_to_be_loaded(tmp_path: Path) -> None:
    loaded, modules = tmp_path / "sys", tmp_path / "modules"
    release = modules / os.uname().release
    release.mkdir(parents=True)
    (loaded / "rbd").mkdir(parents=True)
    (release / "modules.builtin").write_text("kernel/drivers/md/dm-mod.ko\n")
    (release / "modules.dep").write_text(
        "kernel/drivers/block/drbd/drbd.ko.xz: kernel/lib/lru_cache.ko.xz\n"
    )
    known = {
        name: has_module(name, loaded, modules)
        for name in ("rbd", "dm_mod", "dm-mod", "drbd", "lru_cache", "md", "drbd9")
    }
    assert known == {
        "rbd": True,
        "dm_mod": True,
        "dm-mod": True,
        "drbd": True,
        "lru_cache": False,  # it has a line of its own, if it is there
        "md": False,
        "drbd9": False,
    }
    assert not has_module("drbd", tmp_path / "none", tmp_path / "none")


async def test_a_directory_is_looked_for_where_the_node_allows_it(
    tmp_path: Path,
) -> None:
    listed = tmp_path / "file-storage-paths"
    allowed, other = tmp_path / "images", tmp_path / "other"
    allowed.mkdir()
    other.mkdir()
    listed.write_text(f"{allowed}\n")
    machine = LocalMachine(
        tmp_path / "log", Providers([]), (), Images("node1", listed, ())
    )

    async def problem(directory: Path) -> str:
        place = Place(template="sharedfile", params=(("directory", str(directory)),))
        site = Site(node="node1", params=dict(place.params))
        try:
            (need,) = await drive(
                SharedFile(site).examine(), lambda one: machine.run(one, 10)
            )
        except Exception as error:  # noqa: BLE001 - any refusal will do
            return str(error)
        return need.problem

    assert await problem(allowed) == ""
    assert "there is no directory" in await problem(allowed / "gone")
    assert await problem(other) != ""
    (allowed / "link").symlink_to(other)
    assert await problem(allowed / "link") != ""
