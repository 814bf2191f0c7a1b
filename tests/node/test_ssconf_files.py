# SPDX-License-Identifier: BSD-2-Clause
"""ssconf files on a node: Ganeti's are put aside, and come back, whatever happens."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.errors import BadInput, Failed
from moorage.node.records.ssconf import ASIDE, SsconfFiles

THEIRS = {"ssconf_master_node": "old\n", "ssconf_only_theirs": "kept\n"}
OURS = {"master_node": "node1", "node_list": "node1\nnode2", "networks": ""}
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
GANETI = 54321
"""The user that Ganeti's directory belongs to."""


def ganetis(directory: Path) -> SsconfFiles:
    directory.mkdir(mode=0o755)
    for name, text in THEIRS.items():
        (directory / name).write_text(text)
        (directory / name).chmod(0o444)
    (directory / "config.data").write_text("{}")
    return SsconfFiles(directory)


def there(directory: Path) -> dict[str, str]:
    return {one.name: one.read_text() for one in directory.iterdir() if one.is_file()}


def test_files_are_written_and_ganetis_come_back(tmp_path: Path) -> None:
    files = ganetis(tmp_path / "ganeti")
    files.restore()  # nothing is ours yet
    assert there(files.directory) == THEIRS | {"config.data": "{}"}
    for _ in range(2):
        files.write(OURS)
        assert there(files.directory) == {
            "config.data": "{}",
            "ssconf_master_node": "node1\n",
            "ssconf_node_list": "node1\nnode2\n",
            "ssconf_networks": "",
        }
    assert (files.directory / "ssconf_networks").stat().st_mode & 0o777 == 0o444
    assert there(files.directory / ASIDE) == THEIRS
    for _ in range(2):
        files.restore()
        assert there(files.directory) == THEIRS | {"config.data": "{}"}
        assert [one for one in files.directory.iterdir() if one.is_dir()] == []


def test_a_directory_that_is_not_there_is_made(tmp_path: Path) -> None:
    files = SsconfFiles(tmp_path / "ganeti")
    files.restore()
    assert not files.directory.exists()
    files.write(OURS)
    files.restore()
    assert list(files.directory.iterdir()) == []


class Killed(BaseException):
    """The agent was killed."""


def killed_at(
    monkeypatch: pytest.MonkeyPatch, step: int, work: Callable[[], Any]
) -> bool:
    """Do some work until a change of the file system, by its number; return whether."""
    left = [step]
    with monkeypatch.context() as patch:
        for name in ("rename", "replace", "unlink", "rmdir", "mkdir"):
            real = getattr(Path, name)

            def change(*args: Any, real: Any = real, **more: Any) -> Any:
                left[0] -= 1
                if left[0] < 0:
                    raise Killed
                return real(*args, **more)

            patch.setattr(Path, name, change)
        try:
            work()
        except Killed:
            return True
    return False


@pytest.mark.parametrize("first", ["write", "restore"])
@pytest.mark.parametrize("then", ["write", "restore"])
def test_ganetis_files_outlive_a_kill_at_any_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, then: str
) -> None:
    for step in range(100):
        files = ganetis(tmp_path / str(step))
        if os.geteuid() == 0:
            os.chown(files.directory, GANETI, GANETI)
        if first == "restore":
            files.write(OURS)
        work = files.restore if first == "restore" else lambda: files.write(OURS)  # noqa: B023
        killed = killed_at(monkeypatch, step, work)
        if then == "write":
            files.write(OURS)
            assert there(files.directory)["ssconf_master_node"] == "node1\n"
            aside = there(files.directory / ASIDE)
            assert {n: t for n, t in aside.items() if n.startswith("ssconf")} == THEIRS
        files.restore()
        assert not [one for one in files.directory.iterdir() if one.is_dir()]
        left = {n: t for n, t in there(files.directory).items() if n[0] != "."}
        assert left == THEIRS | {"config.data": "{}"}
        if not killed:
            break
    assert step > 3


@root
def test_ganetis_directory_is_roots_for_as_long_as_ours_are_there(
    tmp_path: Path,
) -> None:
    files = ganetis(tmp_path / "ganeti")
    os.chown(files.directory, GANETI, GANETI + 1)
    assert files.problem() == ""
    files.write(OURS)
    files.write(OURS)
    assert files.directory.stat().st_uid == 0
    files.restore()
    known = files.directory.stat()
    assert (known.st_uid, known.st_gid) == (GANETI, GANETI + 1)
    assert there(files.directory) == THEIRS | {"config.data": "{}"}
    assert {one.name for one in files.directory.iterdir()} == there(
        files.directory
    ).keys()


@root
@pytest.mark.parametrize("name", [ASIDE, f"{ASIDE}.draft", f"{ASIDE}.done"])
@pytest.mark.parametrize("linked", [True, False])
def test_who_owns_the_directory_does_not_say_where_root_writes(
    tmp_path: Path, name: str, *, linked: bool
) -> None:
    files = ganetis(tmp_path / "ganeti")
    trap = tmp_path / "trap"
    trap.mkdir()
    (trap / "ssconf_x").write_text("of root")
    if linked:
        (files.directory / name).symlink_to(trap)
    else:
        (files.directory / name).mkdir()
        (files.directory / name / "ssconf_y").write_text("planted")
        os.chown(files.directory / name, GANETI, GANETI)
    os.chown(files.directory, GANETI, GANETI)
    files.restore()
    with pytest.raises(Failed, match="is not root's"):
        files.write(OURS)
    assert files.directory.stat().st_uid == GANETI
    files.restore()
    assert there(files.directory) == THEIRS | {"config.data": "{}"}
    assert there(trap) == {"ssconf_x": "of root"}


def test_root_writes_nothing_where_others_may(tmp_path: Path) -> None:
    files = ganetis(tmp_path / "ganeti")
    files.directory.chmod(0o777)
    assert "may be written by others" in files.problem()
    with pytest.raises(Failed, match="root does not write there"):
        files.write(OURS)
    assert there(files.directory) == THEIRS | {"config.data": "{}"}


@pytest.mark.parametrize("name", ["../x", "", "a/b", "A", ".x", "x" * 70, "a\n"])
def test_a_master_names_no_other_file(tmp_path: Path, name: str) -> None:
    files = ganetis(tmp_path / "ganeti")
    with pytest.raises(BadInput):
        files.write({"master_node": "node1", name: "x"})
    with pytest.raises(BadInput):
        files.write({"master_node": "x" * (9 << 20)})
    assert there(files.directory) == THEIRS | {"config.data": "{}"}
