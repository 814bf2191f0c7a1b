# SPDX-License-Identifier: BSD-2-Clause
"""Mirrored disks with real LVM and DRBD, on two nodes with kernels of their own."""

from typing import Any

import pytest

pytestmark = pytest.mark.real

ADD = "-t drbd --disk 0:size=16M,name=root --no-install --ignore-ipolicy"


def test_the_life_of_a_mirrored_disk(hamlet: Any) -> None:
    a, b = hamlet.nodes
    hamlet.type("gnt-cluster modify --vg-name xenvg")
    hamlet.type(f"gnt-instance add {ADD} -n {a.name}:{b.name} web")
    a.run("dd if=/dev/urandom of=/dev/drbd0 bs=1M count=4 oflag=direct")
    told = a.run("md5sum < /dev/drbd0")

    # Guests are pretended here, and none of those gets to another machine alive.
    hamlet.type("gnt-instance failover -f web")
    assert "Secondary/Primary" in a.run("cat /proc/drbd")
    assert b.run("md5sum < /dev/drbd0") == told
    refused = a.run("drbdsetup primary 0 2>&1 || true")
    assert "Multiple primaries not allowed" in refused

    _is_tuned_while_it_runs(hamlet)
    _is_not_gone_to_while_it_is_old(hamlet)
    hamlet.type("gnt-instance replace-disks -s web")
    hamlet.type("gnt-instance grow-disk --ignore-ipolicy web 0 8M")
    hamlet.type("gnt-instance failover -f web")
    assert a.run("head -c 16M /dev/drbd0 | md5sum") == told
    assert a.run("blockdev --getsize64 /dev/drbd0").strip() == str(24 << 20)

    hamlet.type("gnt-instance shutdown web")
    assert "cs:" not in a.run("cat /proc/drbd") + b.run("cat /proc/drbd")
    hamlet.type("gnt-instance modify -t plain web")
    assert list(hamlet.volumes(1)) == []
    (volume,) = hamlet.volumes(0)
    assert a.run(f"head -c 16M /dev/{volume} | md5sum") == told
    hamlet.type("gnt-instance remove -f web")
    assert hamlet.volumes(0) == {}


def _is_tuned_while_it_runs(hamlet: Any) -> None:
    """What the kernel's DRBD says of itself on both nodes, while one of them writes."""

    def shown() -> list[str]:
        told = (node.run("drbdsetup show resource0") for node in hamlet.nodes)
        return [" ".join(one.split()) for one in told]

    usual = shown()
    rates = "drbd:dynamic-resync=yes,c-plan-ahead=30,c-max-rate=50000"
    hamlet.type(f"gnt-cluster modify -D {rates},net-custom=--max-buffers=8000")
    for one in shown():
        assert "c-plan-ahead 30;" in one
        assert "c-max-rate 50000k;" in one
        assert "max-buffers 8000;" in one
    hamlet.type("gnt-group modify -D drbd:dynamic-resync=no,resync-rate=9999 default")
    hamlet.type("gnt-instance modify --disk 0:disk-barriers=f,meta-barriers=yes web")
    for one in shown():
        assert "resync-rate 9999k;" in one
        assert "c-plan-ahead 0;" in one
        assert "disk-flushes no;" in one
        assert "md-flushes no;" in one
        assert "on-io-error" not in one  # detaching is what DRBD does unasked
    gone = "dynamic-resync=default,resync-rate=default"
    hamlet.type(f"gnt-group modify -D drbd:{gone} default")
    off = "disk-barriers=default,meta-barriers=default"
    hamlet.type(f"gnt-instance modify --disk 0:{off} web")
    every = ["dynamic-resync", "c-plan-ahead", "c-max-rate", "net-custom"]
    words = ",".join(f"{one}=default" for one in every)
    hamlet.type(f"gnt-cluster modify -D drbd:{words}")
    assert shown() == usual


def _is_not_gone_to_while_it_is_old(hamlet: Any) -> None:
    """What was written while the second copy was down is there; the old one waits."""
    a, b = hamlet.nodes
    a.run("drbdsetup down resource0")
    b.run("dd if=/dev/drbd0 of=/dev/drbd0 bs=1M count=1 oflag=direct")
    refused = hamlet.refused("gnt-instance failover -f web")
    assert f"the copy of disk root on node {a.name} is not up to date" in refused
    grow = "gnt-instance grow-disk --ignore-ipolicy web 0 8M"
    assert "the copies of disk root are not the same" in hamlet.refused(grow)
    shown = hamlet.type("gnt-instance info web")
    assert "UpToDate/DUnknown, status *DEGRADED*" in shown
    looked = hamlet.type("gnt-cluster verify-disks")
    assert "has one good copy" in looked
    hamlet.type("gnt-instance activate-disks --wait-for-sync web")
    assert ") in sync, status ok" in hamlet.type("gnt-instance info web")
