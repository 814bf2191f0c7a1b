# SPDX-License-Identifier: BSD-2-Clause
"""How a node runs an allocator: as whom, with what, for how long, and which ones."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from allocating import Shelf, shelf
from moorage.errors import AllocatorFailed, NotFound
from moorage.model.uidpool import STANDARD
from moorage.node.extensions.allocators import Allocators
from moorage.protocol import RunAllocator

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


@pytest.fixture
def programs() -> Iterator[Shelf]:
    with shelf() as found:
        yield found


def asked(name: str = "mine", message: str = "{}", *words: str) -> RunAllocator:
    return RunAllocator(allocator=name, message=message, arguments=words)


async def said(programs: Shelf, text: str, **more: str) -> str:
    programs.shell("mine", text)
    return (await Allocators([programs.path]).run(asked(**more))).output


async def test_it_reads_a_file_and_gets_words(programs: Shelf) -> None:
    programs.shell("mine", 'cat "$1"; shift; echo "[$*]"')
    found = await Allocators([programs.path]).run(
        asked("mine", '{"a": 1}', "--x=1", "b c")
    )
    assert found.output == '{"a": 1}[--x=1 b c]\n'


@as_root
async def test_it_runs_as_a_user_that_nobody_else_is(programs: Shelf) -> None:
    told = await said(
        programs, "id -u; id -G; grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status"
    )
    uid, groups, *status = told.splitlines()
    (first, last) = STANDARD[0]
    assert first <= int(uid) <= last
    assert groups == uid
    assert [line.split()[1].strip("0") for line in status] == ["", "", "1"]


@as_root
async def test_what_root_keeps_it_cannot_read(programs: Shelf, tmp_path: Path) -> None:
    secret = tmp_path / "key"
    secret.write_text("secret")
    with pytest.raises(AllocatorFailed, match="Permission denied"):
        await said(programs, f"cat {secret}")


async def test_it_sees_no_environment_of_the_agents(programs: Shelf) -> None:
    os.environ["MOORAGE_TEST"] = "x"
    try:
        told = await said(programs, "/usr/bin/env; echo; pwd")
    finally:
        del os.environ["MOORAGE_TEST"]
    names = {line.partition("=")[0] for line in told.split("\n\n")[0].splitlines()}
    assert names - {"PWD", "_", "SHLVL", "OLDPWD"} == {
        "PATH",
        "LC_ALL",
        "TMPDIR",
        "HOME",
    }
    assert not Path(told.splitlines()[-1]).exists()  # its directory went with it


async def test_one_that_never_ends_is_ended(programs: Shelf) -> None:
    programs.shell("mine", "sleep 60")
    with pytest.raises(AllocatorFailed, match=r"did not end within 0\.2 s"):
        await Allocators([programs.path], limit=0.2).run(asked())


@pytest.mark.parametrize("name", ["../mine", "/bin/true", "", "-c", ".", "no such"])
async def test_a_master_names_no_other_place(programs: Shelf, name: str) -> None:
    programs.shell("mine", "echo hello")
    with pytest.raises(NotFound, match="there is no allocator"):
        await Allocators([programs.path]).run(asked(name))


async def test_one_that_others_may_write_to_is_not_run(programs: Shelf) -> None:
    programs.program("mine", "#!/bin/sh\necho hello\n", 0o757)
    with pytest.raises(AllocatorFailed, match="is not run"):
        await Allocators([programs.path]).run(asked())


async def test_the_first_directory_counts(programs: Shelf) -> None:
    for place in ("a", "b"):
        (programs.path / place).mkdir()
        programs.program(f"{place}/mine", f"#!/bin/sh\necho {json.dumps(place)}\n")
    programs.program("b/yours", "#!/bin/sh\n")
    programs.program("b/notes", "no program\n", 0o644)
    found = Allocators([programs.path / place for place in ("none", "a", "b")])
    assert found.names() == ("mine", "yours")
    assert (await found.run(asked())).output == "a\n"
