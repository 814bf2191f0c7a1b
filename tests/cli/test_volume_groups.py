# SPDX-License-Identifier: BSD-2-Clause
"""Volume groups: the cluster's, or ``vg=`` and ``metavg=``, for any command."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.testing.cluster import ClusterBuilder
from moorage.testing.served import Served, served

BARE = "--no-install --no-nics"
META = "0:size=64M,metavg=none"


@pytest.fixture
def sim() -> Iterator[Served]:
    with served(ClusterBuilder()) as found:
        for node in ("node1", "node2"):
            devices = {"devices": {"/dev/sdz": 100000}}
            found.cluster.nodes.san.groups[f"{node} other"] = devices
        yield found


def test_a_disk_is_in_the_volume_groups_that_it_names(
    types: Callable[..., str], sim: Served
) -> None:
    types(f"gnt-instance add -t plain -n node1 {BARE} --disk 0:size=64M,vg=other web1")
    types("gnt-instance modify --disk add:size=64M,vg=other web1")
    types("gnt-disk add -t plain -n node1 -s 64M -D vg=other data1")
    both = "--disk 0:size=64M,vg=other,metavg=xenvg"
    types(f"gnt-instance add -t drbd -n node1:node2 {BARE} {both} web2")
    types("gnt-disk add -t drbd -n node1:node2 -s 64M -D metavg=other data2")
    volumes = [
        key.partition("-")[0] + key[-5:] for key in sim.cluster.nodes.san.logical
    ]
    assert sorted(volumes) == sorted(
        ["node1 other/uuiddisk0"] * 2
        + ["node1 other/uuiddisk1"]
        + [f"{node} other/uuid_data" for node in ("node1", "node2")]
        + [f"{node} xenvg/uuid_meta" for node in ("node1", "node2")]
        + [f"{node} other/uuid_meta" for node in ("node1", "node2")]
        + [f"{node} xenvg/uuid_data" for node in ("node1", "node2")]
    )


@pytest.mark.parametrize(
    "line",
    [
        f"gnt-instance add -t plain -n node1 {BARE} --disk 0:size=64M,vg=none web1",
        f"gnt-instance add -t drbd -n node1:node2 {BARE} --disk {META} web1",
        "gnt-disk add -t plain -n node1 -s 64M -D vg=none data1",
        "gnt-disk add -t drbd -n node1:node2 -s 64M -D metavg=none data1",
        "gnt-instance modify --disk add:size=64M,dev_type=plain,vg=none web0",
    ],
)
def test_a_volume_group_that_is_not_there_is_refused_at_once(
    types: Callable[..., str], sim: Served, line: str
) -> None:
    types(f"gnt-instance add -t diskless -n node1 {BARE} web0")
    refused = types(line, status=1)
    assert "node node1 has no volume group none" in refused
    assert "hint: on node1: vgcreate none /dev/" in refused
    assert "nothing was changed" in refused
    assert not sim.cluster.nodes.san.logical


def test_no_disk_is_mirrored_where_none_may_be_but_on_its_way(
    types: Callable[..., str], sim: Served
) -> None:
    types(f"gnt-instance add -t plain -n node1 {BARE} --disk 0:size=64M web1")
    types("gnt-instance shutdown web1")
    types("gnt-cluster modify --enabled-disk-templates plain,sharedfile")
    refused = types("gnt-instance modify -t drbd -n node2 web1", status=1)
    assert "drbd" in refused
    assert "nothing was changed" in refused
    types("gnt-instance move -f -n node2 web1")
    (volume,) = sim.cluster.nodes.san.logical
    assert volume.startswith("node2 ")
    shown = types("gnt-instance list --no-headers -o pnode,disk_template web1")
    assert shown.split() == ["node2", "plain"]


@pytest.mark.parametrize(
    "line",
    [
        f"gnt-instance add -t plain {BARE} --disk 0:size=64M,vg=none web1",
        f"gnt-instance add -t drbd {BARE} --disk 0:size=64M,vg=none web1",
        f"gnt-instance add -t drbd {BARE} --disk {META} web1",
        "gnt-disk add -t drbd -s 64M -D metavg=none data1",
    ],
)
def test_nor_does_the_planner_choose_a_node_for_it(
    types: Callable[..., str], sim: Served, line: str
) -> None:
    refused = types(line, status=1)
    assert "has no volume group none" in refused
    assert "nothing was changed" in refused
    assert not sim.cluster.nodes.san.logical


@pytest.mark.parametrize(
    ("line", "groups"),
    [
        (f"gnt-instance add -t plain {BARE} --disk 0:size=64M,vg=other web1", 1),
        (f"gnt-instance add -t drbd {BARE} --disk 0:size=64M,vg=other web1", 2),
        (f"gnt-instance add -t drbd {BARE} --disk 0:size=64M,metavg=other web1", 2),
        ("gnt-disk add -t drbd -s 64M -D metavg=other data1", 2),
    ],
)
def test_the_planner_chooses_nodes_that_have_them(
    types: Callable[..., str], sim: Served, line: str, groups: int
) -> None:
    sim.cluster.nodes.san.groups["node3 other"] = sim.cluster.nodes.san.groups.pop(
        "node1 other"
    )
    types(line)
    keys = {key.split()[0] for key in sim.cluster.nodes.san.logical}
    assert keys <= {"node2", "node3"}
    assert len(keys) == groups


NONE = "no volume group is configured in this cluster"


@pytest.fixture
def bare() -> Iterator[Served]:
    """A cluster without a volume group."""
    builder = ClusterBuilder()
    settings = builder.objects["cluster"]
    builder.objects["cluster"] = replace(settings, volume_group_name="")
    with served(builder) as found:
        yield found


@pytest.mark.parametrize(
    "line",
    [
        *(
            f"gnt-instance add {BARE} {where} --disk {disk} web1"
            for disk in ("0:size=64M", "0:adopt=lv0")
            for where in ("-t plain", "-t plain -n node1", "-t plain -I hail")
        ),
        *(
            f"gnt-instance add -t drbd {BARE} {where} --disk 0:size=64M{more} web1"
            for more in ("", ",metavg=xenvg", ",vg=xenvg")
            for where in ("", "-n node1:node2", "-I hail", "-g default")
        ),
        "gnt-instance modify --disk add:size=64M,dev_type=plain web0",
        "gnt-instance modify -t plain web0",
        "gnt-instance modify -t drbd -n node2 web0",
        "gnt-disk add -t plain -n node1 -s 64M data1",
        "gnt-disk add -t plain -n node1 -s 64M -D vg=xenvg data1",
        "gnt-disk add -t drbd -n node1:node2 -s 64M data1",
        "gnt-disk add -t drbd -n node1 -s 64M data1",
        "gnt-disk add -t drbd -s 64M data1",
        "gnt-disk adopt -t plain -n node1 lv0",
        "gnt-disk convert -t plain data0",
        "gnt-disk convert -t drbd -n node1:node2 data0",
        "gnt-backup import -t plain --src-dir web0 --no-nics web1",
        "gnt-backup import -t drbd -n node1:node2 --src-dir web0 --no-nics web1",
    ],
)
def test_a_cluster_without_one_says_the_same_everywhere(
    typed: Callable[..., Any], bare: Served, line: str
) -> None:
    new = f"gnt-instance add -t sharedfile -n node1 {BARE} -s 64M --no-start web0"
    data = "gnt-disk add -t sharedfile -s 64M data0"
    for before in (new, data, "gnt-backup export -n node1 web0"):
        assert typed(before, **bare.environ).status == 0
    screen = typed(line, **bare.environ)
    assert screen.status == 1
    assert NONE in screen.err
    assert "hint: gnt-cluster modify --vg-name=NAME" in screen.err
    assert "nothing was changed" in screen.err


@pytest.mark.parametrize(
    "line",
    [
        "gnt-disk adopt -t drbd -n node1 lv0",
        f"gnt-instance add -t drbd -n node1:node2 {BARE} --disk 0:adopt=lv0 web1",
        "gnt-disk add -t drbd -n node1:node2 --adopt lv0 data1",
    ],
)
def test_no_command_for_a_volume_of_its_own_names_another_that_refuses(
    types: Callable[..., str], line: str
) -> None:
    refused = types(line, status=1)
    assert "nothing was changed" in refused
    assert "hint: gnt-disk adopt -t plain" in refused
    assert "gnt-disk convert -t drbd" in refused


def test_the_second_node_needs_them_too(types: Callable[..., str], sim: Served) -> None:
    del sim.cluster.nodes.san.groups["node2 other"]
    line = "gnt-disk add -t drbd -n node1:node2 -s 64M -D metavg=other data1"
    assert "node node2 has no volume group other" in types(line, status=1)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("gnt-disk modify -D vg=xenvg data1", "a disk's 'vg' cannot be changed"),
        (
            "gnt-disk add -t plain -n node1 -s 64M -D metavg=other x",
            "disk template 'plain' has no parameter 'metavg'",
        ),
        (
            "gnt-disk add -t sharedfile -s 64M -D vg=other x",
            "disk template 'sharedfile' has no parameter 'vg'",
        ),
        (
            "gnt-disk add -t plain -n node1 -s 64M -D host=a x",
            "disk template 'plain' has no parameter 'host'",
        ),
    ],
)
def test_what_a_template_has_no_use_for_is_refused(
    types: Callable[..., str], line: str, told: str
) -> None:
    types("gnt-disk add -t plain -n node1 -s 64M -D vg=other data1")
    assert told in types(line, status=1)
