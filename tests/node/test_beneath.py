# SPDX-License-Identifier: BSD-2-Clause
"""What is opened beneath a directory is found without links, and lies there."""

import errno
import os
from pathlib import Path

import pytest

from moorage.node.machine import beneath
from moorage.node.machine.beneath import open_beneath

SECRET = "the authority's key"  # noqa: S105 - it opens nothing
LINKS = ("../../ca.key", "{top}/ca.key", "disk0", "/proc/self/fd/0")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a directory of images beside a secret."""
    (tmp_path / "ca.key").write_text(SECRET)
    (tmp_path / "images" / "web1").mkdir(parents=True)
    (tmp_path / "images" / "web1" / "disk0").write_text("data")
    return tmp_path / "images"


@pytest.fixture(params=["openat2", "walk"])
def opened(request, root):
    """Return what opens a file, in either way."""
    top = os.open(root, os.O_PATH | os.O_DIRECTORY)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC

    def way(path: str) -> str:
        if request.param == "walk":
            found = beneath.walk(top, path, flags)
        else:
            found = open_beneath(top, path, flags)
        with os.fdopen(found) as file:
            return file.read()

    yield way
    os.close(top)


def test_a_file_in_its_place_is_opened(opened):
    assert opened("web1/disk0") == "data"


@pytest.mark.parametrize("target", LINKS)
def test_a_link_in_a_files_place_leads_nowhere(opened, root, target):
    (root / "web1" / "disk1").symlink_to(target.format(top=root.parent))
    with pytest.raises(OSError, match="symbolic links") as caught:
        opened("web1/disk1")
    assert caught.value.errno == errno.ELOOP


def test_a_link_in_a_directorys_place_leads_nowhere(opened, root):
    (root / "web2").symlink_to(root.parent)
    with pytest.raises(OSError, match="symbolic links") as caught:
        opened("web2/ca.key")
    assert caught.value.errno == errno.ELOOP


def test_a_missing_file_is_told_from_a_link(opened):
    with pytest.raises(FileNotFoundError):
        opened("web1/disk9")


@pytest.mark.parametrize("path", ["../ca.key", "web1/../../ca.key", "/etc/hostname"])
def test_nothing_leads_out(opened, path):
    with pytest.raises(OSError, match="cross-device") as caught:
        opened(path)
    assert caught.value.errno == errno.EXDEV


def test_a_new_file_is_made_where_it_belongs(root):
    top = os.open(root, os.O_PATH | os.O_DIRECTORY)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
    os.close(open_beneath(top, "web1/disk2", flags))
    assert (root / "web1" / "disk2").stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        open_beneath(top, "web1/disk2", flags)
    os.close(top)


def test_a_null_character_does_not_end_a_name(opened) -> None:
    with pytest.raises((OSError, ValueError), match="null"):
        opened("web1/disk0\0.new")
