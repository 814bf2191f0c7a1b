# SPDX-License-Identifier: BSD-2-Clause
"""Directories of keys and records: for one user alone, or refused."""

from pathlib import Path

import pytest

from moorage.daemons.state_directory import claim
from moorage.errors import WrongState


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_a_directory_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    claim(tmp_path / "a/b", "keys")
    assert [mode(tmp_path / one) for one in ("a", "a/b")] == [0o700, 0o700]


def test_one_that_others_read_is_closed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a").chmod(0o755)
    claim(tmp_path / "a", "keys")
    assert mode(tmp_path / "a") == 0o700


@pytest.mark.parametrize("way", ["a", "a/b", "link"])
def test_one_that_others_may_write_is_refused_and_left_alone(
    tmp_path: Path, way: str
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a").chmod(0o777)
    (tmp_path / "link").symlink_to("a/b")
    with pytest.raises(WrongState) as caught:
        claim(tmp_path / way, "keys")
    told = f"keys cannot be kept in {tmp_path / way}: {tmp_path}/a, which belongs to"
    assert caught.value.message.startswith(told)
    assert caught.value.hint == f"namei -lx {tmp_path / way}"
    assert mode(tmp_path / "a") == 0o777
    assert [*(tmp_path / "a").iterdir()] == []


def test_a_directory_as_tmp_above_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a").chmod(0o1777)
    claim(tmp_path / "a/b", "keys")
    assert mode(tmp_path / "a/b") == 0o700
