# SPDX-License-Identifier: BSD-2-Clause
"""Who could change what is at a path, besides its owner and root."""

import grp
import os
import pwd
import struct
from pathlib import Path

import pytest

from moorage.node.extensions import oses, providers
from moorage.node.machine.trust import distrust

root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


def put(path: Path, text: str = "#!/bin/sh\n", mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def test_what_is_ours_alone_is_trusted(tmp_path: Path) -> None:
    script = put(tmp_path / "a/b/script")
    assert distrust(script) == ""
    assert distrust(tmp_path / "a/not/there") == ""
    (tmp_path / "link").symlink_to("a/../a/b")
    assert distrust(tmp_path / "link/script") == ""


def test_the_group_of_one_user_is_that_user(tmp_path: Path) -> None:
    script = put(tmp_path / "script", mode=0o775)
    me = pwd.getpwuid(os.geteuid())
    os.chown(script, me.pw_uid, me.pw_gid)
    private = grp.getgrgid(me.pw_gid)
    alone = private.gr_name == me.pw_name and set(private.gr_mem) <= {me.pw_name}
    assert (distrust(script) == "") is alone


@pytest.mark.real
def test_a_group_of_several_is_others(tmp_path: Path) -> None:
    script = put(tmp_path / "script", mode=0o775)
    os.chown(script, 0, 65534)
    assert distrust(script).endswith("may be written by others (mode 0775)")


@root
@pytest.mark.parametrize("step", ["a", "a/b", "a/b/script"])
def test_what_somebody_else_owns_is_named_with_the_owner(
    tmp_path: Path, step: str
) -> None:
    """An owner may write again whatever the mode says."""
    script = put(tmp_path / "a/b/script", mode=0o555)
    os.chown(tmp_path / step, 65534, 0)
    owner = f"{tmp_path / step} belongs to user nobody (mode "
    assert distrust(script).startswith(owner)


@root
def test_a_list_of_access_lets_others_write_behind_a_private_group(
    tmp_path: Path,
) -> None:
    script = put(tmp_path / "script", mode=0o664)
    os.chown(script, 0, 0)
    assert distrust(script) == ""
    entries = ((1, 6, -1), (2, 6, 65534), (4, 4, -1), (16, 6, -1), (32, 4, -1))
    words = b"".join(struct.pack("<HHi", *one) for one in entries)
    try:
        os.setxattr(script, "system.posix_acl_access", struct.pack("<I", 2) + words)
    except OSError as error:
        pytest.skip(f"no access control lists here: {error.strerror}")
    assert distrust(script).endswith("may be written by others (mode 0664)")


@pytest.mark.parametrize("mode", [0o757, 0o1757])
def test_a_file_that_others_may_write_is_named_with_owner_and_mode(
    tmp_path: Path, mode: int
) -> None:
    script = put(tmp_path / "script", mode=mode)
    told = f"may be written by others (mode {mode:04o})"
    assert distrust(script).startswith(f"{script}, which belongs to user ")
    assert distrust(script).endswith(told)


def test_every_step_of_the_way_counts(tmp_path: Path) -> None:
    script = put(tmp_path / "a/b/script")
    (tmp_path / "a").chmod(0o777)
    assert distrust(script).startswith(f"{tmp_path}/a, which belongs to user ")
    (tmp_path / "a").chmod(0o1777)  # others cannot rename what is ours
    assert distrust(script) == ""
    assert distrust(tmp_path / "a").startswith(f"{tmp_path}/a, which")


def test_where_a_link_leads_counts_too(tmp_path: Path) -> None:
    put(tmp_path / "open/script")
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "open/script")
    assert distrust(tmp_path / "link").startswith(f"{tmp_path}/open, which")
    (tmp_path / "round").symlink_to("round")
    assert distrust(tmp_path / "round") == ""


def test_a_provider_whose_scripts_others_may_write_is_invalid(tmp_path: Path) -> None:
    entry = tmp_path / "ext/loop"
    for name in (*providers.SCRIPTS, providers.PARAMETERS):
        put(entry / name)
    (found,) = providers.Providers([tmp_path / "ext"]).scan()
    assert found.problem == ""
    (entry / "attach").chmod(0o777)
    (found,) = providers.Providers([tmp_path / "ext"]).scan()
    told = f"File 'attach' under path '{entry}' is not trusted: {entry}/attach, which"
    assert found.problem.startswith(told)
    (entry / "attach").chmod(0o755)
    settings = put(entry / "etc/settings.sh", mode=0o666)
    (found,) = providers.Providers([tmp_path / "ext"]).scan()
    told = f"Path '{entry}' is not trusted: {settings}, which belongs to user "
    assert found.problem.startswith(told)
    settings.unlink()
    settings.symlink_to(put(tmp_path / "theirs/settings.sh", mode=0o666))
    (found,) = providers.Providers([tmp_path / "ext"]).scan()
    assert f"not trusted: {tmp_path}/theirs/settings.sh, which" in found.problem


def test_a_system_whose_directory_others_may_write_is_invalid(tmp_path: Path) -> None:
    entry = tmp_path / "os/tiny"
    put(entry / "ganeti_api_version", "20\n")
    for name in ("create", "import", "export", "rename", "verify"):
        put(entry / name)
    (found,) = oses.scan([tmp_path / "os"])
    assert found.problem == ""
    entry.chmod(0o777)
    (found,) = oses.scan([tmp_path / "os"])
    assert "' is not trusted: " in found.problem
    assert "may be written by others (mode 0777)" in found.problem
