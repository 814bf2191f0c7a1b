# SPDX-License-Identifier: BSD-2-Clause
"""``mem_path``: huge pages that are not there are told in a sentence."""

from pathlib import Path

import pytest

from moorage.errors import Failed
from moorage.node.hypervisors.kvm import hugepages
from moorage.units import Mib


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    found = tmp_path / "mounts"
    found.write_text(f"none / ext4 rw 0 0\nnone {tmp_path}/a\\040b hugetlbfs rw 0 0\n")
    (tmp_path / "a b" / "below").mkdir(parents=True)
    return found


@pytest.mark.parametrize("name", ["", "gone"])
def test_where_no_huge_pages_are_mounted(
    tmp_path: Path, mounts: Path, name: str
) -> None:
    with pytest.raises(
        Failed, match="has no huge pages: nothing of the kind"
    ) as caught:
        hugepages.page_size(str(tmp_path / name), Mib(64), mounts)
    assert "mount -t hugetlbfs" in caught.value.hint


@pytest.mark.parametrize("name", ["a b", "a b/below"])
def test_where_some_are_mounted_a_guest_must_fill_whole_pages(
    tmp_path: Path, mounts: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    class Gigabyte:
        f_bsize = 1 << 30

    monkeypatch.setattr(hugepages.os, "statvfs", lambda _path: Gigabyte)
    with pytest.raises(Failed, match="64 MiB of memory are no whole number"):
        hugepages.page_size(str(tmp_path / name), Mib(64), mounts)


def test_what_is_promised_to_others_is_not_free(tmp_path: Path) -> None:
    pool = tmp_path / "hugepages-2048kB"
    pool.mkdir()
    (pool / "free_hugepages").write_text("24\n")
    (pool / "resv_hugepages").write_text("8\n")
    assert hugepages.free_memory(2048, tmp_path) == 32
