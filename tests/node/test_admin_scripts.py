# SPDX-License-Identifier: BSD-2-Clause
"""A master runs the scripts that a node's administrator put there, and no others."""

from pathlib import Path

import pytest

from moorage.errors import Failed, NotFound
from moorage.node.extensions.admin_scripts import AdminScripts


def script(root: Path, name: str, text: str, mode: int = 0o755) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(mode)


async def test_what_a_script_prints_and_how_it_ends(tmp_path: Path) -> None:
    script(tmp_path, "oob/ipmi", 'echo "$1 of $2"; echo no >&2; exit 3')
    scripts = AdminScripts(tmp_path)
    said = await scripts.run("oob", "ipmi", ("power-off", "node2; reboot"))
    assert (said.output, said.code) == ("power-off of node2; reboot\nno\n", 3)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("oob", "../restricted-commands/uptime"),
        ("oob", "/bin/true"),
        ("oob", "-c"),
        ("oob", ".."),
        ("hooks", "uptime"),
        ("..", "uptime"),
        ("restricted-commands", "nosuch"),
        ("restricted-commands", ""),
    ],
)
async def test_a_master_names_no_other_place(
    tmp_path: Path, kind: str, name: str
) -> None:
    for place in ("restricted-commands/uptime", "hooks/uptime", "oob/ipmi"):
        script(tmp_path, place, f"touch {tmp_path}/mark")
    with pytest.raises(NotFound):
        await AdminScripts(tmp_path).run(kind, name, ())
    assert not (tmp_path / "mark").exists()


async def test_a_script_that_others_may_write_to_is_not_run(tmp_path: Path) -> None:
    script(tmp_path, "oob/ipmi", f"touch {tmp_path}/mark", 0o757)
    with pytest.raises(Failed, match="is not run"):
        await AdminScripts(tmp_path).run("oob", "ipmi", ())
    assert not (tmp_path / "mark").exists()
