# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-disk story``, typed at a master on simulated nodes."""

import json
import os
import pwd
from collections.abc import Iterator

import pytest

from moorage.testing.cluster import ClusterBuilder
from moorage.testing.served import Served, served

WHO = f"{pwd.getpwuid(os.geteuid()).pw_name} by luxi"


@pytest.fixture
def sim() -> Iterator[Served]:
    with served(ClusterBuilder().instance("web1").disk("other")) as found:
        yield found


def test_everything_that_happened_to_a_disk_with_the_users_words(types) -> None:
    types("gnt-disk add -t ext -p san -s 1G -n node1 --reason 'for web1' data1")
    types("gnt-disk attach data1 web1")
    types("gnt-disk detach --reason maintenance data1")
    types("gnt-disk grow data1 1G")
    types("gnt-disk remove -f data1")
    told = json.loads(types("gnt-disk story --json data1"))
    lines = types(f"gnt-disk story {told['uuid']}").splitlines()
    assert lines[0] == f"Disk data1 ({told['uuid']}), which is gone"
    assert lines[1] == (
        "1970-01-01 00:16:40  record disk data1  "
        f'(job 1 DISK_ADD(data1) · {WHO} · "for web1")'
    )
    assert "    size: 1.0G" in lines
    assert "    last_node: node1" in lines
    given = lines.index(
        "1970-01-01 00:16:40  give disk data1 to web1, epoch 1"
        f"  (job 2 DISK_ATTACH(data1) · {WHO})"
    )
    assert lines[given + 1 : given + 3] == [
        "    epoch: 0 -> 1",
        "    instance: (none) -> web1",
    ]
    assert any(f'DISK_DETACH(data1) · {WHO} · "maintenance")' in line for line in lines)
    assert "    size: 1.0G -> 2.0G" in lines
    assert lines[-1].endswith(f"forget disk data1  (job 5 DISK_REMOVE(data1) · {WHO})")
    assert [one["kind"] for one in told["events"] if "kind" in one] == [
        "made",
        "removed",
    ]


def test_a_disk_that_was_not(typed, sim: Served) -> None:
    screen = typed("gnt-disk story data9", **sim.environ)
    assert screen.status == 1
    assert "disk 'data9' is not known, and was not" in screen.err


def test_a_mirrored_disk_is_told_with_the_names_of_its_volumes(types) -> None:
    types("gnt-cluster modify --vg-name=xenvg")
    types("gnt-disk add -t drbd -s 1G -n node1:node2 pair")
    (line,) = [
        one for one in types("gnt-disk story pair").splitlines() if "chil" in one
    ]
    volumes = line.removeprefix("    children: ").split(", ")
    assert [one.rpartition("_")[2] for one in volumes] == ["data", "meta"]
    assert {one.partition("/")[0] for one in volumes} == {"xenvg"}
