# SPDX-License-Identifier: BSD-2-Clause
"""The scan of the search path for ExtStorage providers."""

from pathlib import Path

import pytest

from moorage.node.extensions.providers import Providers
from moorage.storage.provider import OPTIONAL, SCRIPTS, usable


def provider(
    path: Path, *scripts: str, listed: str | None = "tier ssd or hdd\n"
) -> None:
    path.mkdir(parents=True)
    for name in scripts:
        (path / name).write_text("#!/bin/sh\n")
        (path / name).chmod(0o755)
    if listed is not None:
        (path / "parameters.list").write_text(listed)


@pytest.mark.requirement("S0-22", "S0-53", "S0-66")
def test_seven_scripts_and_a_list_make_a_provider(tmp_path: Path) -> None:
    provider(tmp_path / "nas", *SCRIPTS)
    (found,) = Providers([tmp_path]).scan()
    assert (found.name, found.path) == ("nas", str(tmp_path / "nas"))
    assert found.valid
    assert found.optional == ()
    assert found.parameters == {"tier": "ssd or hdd"}


@pytest.mark.requirement("S0-22")
def test_every_visible_entry_is_listed(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    provider(one / "nas", *SCRIPTS, *OPTIONAL)
    provider(two / "nas", *SCRIPTS)
    provider(one / ".hidden", *SCRIPTS)
    (one / "stray").write_text("")
    provider(one / "a b", *SCRIPTS)
    (two / "linked").symlink_to(one / "nas")
    found = Providers([one, two, tmp_path / "gone"]).scan()
    stray = "Directory for External Storage Provider {} not found in search path"
    assert [(entry.name, entry.problem) for entry in found] == [
        ("a b", stray.format("a b")),
        ("nas", ""),
        ("stray", stray.format("stray")),
        ("linked", ""),
        ("nas", ""),
    ]
    chosen = usable(found)
    assert set(chosen) == {"nas", "linked"}
    assert chosen["nas"].path == str(one / "nas")


@pytest.mark.requirement("S0-22")
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path) -> None:
    provider(tmp_path / "a", *[*SCRIPTS][1:])
    provider(tmp_path / "b", *SCRIPTS, listed=None)
    provider(tmp_path / "c", *SCRIPTS)
    (tmp_path / "c/grow").chmod(0o655)
    provider(tmp_path / "d", *[*SCRIPTS][1:])
    (tmp_path / "d/create").mkdir()
    provider(tmp_path / "e", *SCRIPTS)
    (tmp_path / "e/open").write_text("")
    problems = [found.problem for found in Providers([tmp_path]).scan()]
    under = f"under path '{tmp_path}/"
    assert problems == [
        f"File 'create' {under}a' is missing (No such file or directory)",
        f"File 'parameters.list' {under}b' is missing (No such file or directory)",
        f"File 'grow' {under}c' is not executable",
        f"File 'create' {under}d' is not a regular file",
        f"File 'open' {under}e' is not executable",
    ]
