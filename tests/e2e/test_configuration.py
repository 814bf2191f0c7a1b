# SPDX-License-Identifier: BSD-2-Clause
"""The configuration as the master keeps it on its disk: what a ``config.data`` was."""

import io
import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from moorage.cli.tour.typist import Typist
from moorage.daemons.devcluster import Scratch

pytestmark = pytest.mark.slow


def kept(town: Scratch) -> dict[str, dict[str, Any]]:
    """Return what stands in the store of a master, by kind and uuid."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    with closing(sqlite3.connect(town.master.store)) as store:
        for kind, name, value in store.execute("SELECT kind, name, value FROM records"):
            found[kind][name] = json.loads(value)
    return found


@pytest.mark.requirement("S3-06", "S3-08", "S3-09", "S3-10")
def test_disks_stand_at_the_top_and_instances_name_them(
    scratch_of: Callable[[str], Scratch],
) -> None:
    town = scratch_of("--nodes 1 --hypervisor sim")
    hands = Typist(town.environment(), io.StringIO())
    two = "--disk 0:size=64M,dev_type=sharedfile --disk 1:size=64M,dev_type=sharedfile"
    hands.type(f"gnt-instance add -n node1 --no-nics {two} web1")
    hands.type("gnt-disk add -t sharedfile --size 64M spare")
    rows = hands.ask("gnt-disk list -o uuid,name,instance,iv_name")
    mine = [row for row in rows if row["instance"]]
    order = [row["uuid"] for row in sorted(mine, key=lambda row: row["iv_name"])]
    (spare,) = (row["uuid"] for row in rows if row["name"] == "spare")

    data = kept(town)
    (web,) = data["instance"].values()
    assert set(data["disk"]) == {*order, spare}
    assert web["disks"] == order
    assert "disk_template" not in web
    for disk in data["disk"].values():
        assert disk["dev_type"] == "sharedfile"
        assert not {"instance", "owner"} & disk.keys()
        assert web["uuid"] not in json.dumps(disk)

    hands.type("gnt-instance shutdown web1")
    hands.type("gnt-instance modify --disk 0:detach web1")
    after = kept(town)
    (web,) = after["instance"].values()
    assert web["disks"] == order[1:]
    assert set(after["disk"]) == {*order, spare}  # it is there, and nobody's
    was, now = (found["disk"][order[0]] for found in (data, after))
    assert {key for key in now if now[key] != was.get(key)} <= {
        *("epoch", "mtime", "serial_no", "group", "last_node")
    }
