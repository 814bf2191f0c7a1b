# SPDX-License-Identifier: BSD-2-Clause
"""A volume of which nobody knows whose it is; and one that did not grow."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

import pytest

from moorage.model import Change, successor
from moorage.storage import Command
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.machine import NAMED
from moorage.testing.served import Served, served

Types = Callable[..., str]
ADD = "gnt-disk add -t ext -p named -s 64M data1"


@pytest.fixture
def sim() -> Iterator[Served]:
    with served(ClusterBuilder().instance("web1")) as found:
        for node in found.cluster.nodes.nodes.values():
            node.machine.installed += NAMED
        yield found


def doubt(types: Types, sim: Served) -> str:
    """Kill an agent in a ``create`` on a name that another's volume has.

    Returns
    -------
    str
        The uuid of the disk in quarantine.
    """
    foreign = {"size": 64, "provider": "named", "data": "another cluster's"}
    sim.cluster.nodes.san.volumes["data1"] = foreign

    def kill(node: str, command: Command) -> bool:
        if PurePosixPath(command.argv[0]).name == "create":
            sim.cluster.nodes.kill_agent(node)
            raise asyncio.CancelledError
        return False

    for node in sim.cluster.nodes.nodes.values():
        node.machine.refuse = kill
    types(ADD, status=1)
    for node in sim.cluster.nodes.nodes.values():
        node.machine.refuse = lambda _node, _command: False
    told = types("gnt-disk list --no-headers -o uuid,status,unproven")
    uuid, status, unproven = told.split()
    assert (status, unproven) == ("quarantined", "Y")
    return uuid


def there(sim: Served) -> bool:
    return "data1" in sim.cluster.nodes.san.volumes


def test_a_volume_of_somebodys_is_not_removed_in_passing(
    types: Types, sim: Served
) -> None:
    uuid = doubt(types, sim)
    told = types(f"gnt-disk remove -f {uuid}", status=1)
    assert "nobody knows whether volume" in told
    forget = f"gnt-disk forget --reason WHY {uuid}"
    assert forget in told
    for shown in ("gnt-disk info data1", "gnt-cluster verify"):
        text = types(shown, status=None)
        assert forget in " ".join(text.split()), shown
    assert there(sim)
    types(f"gnt-disk forget -f --reason 'it is theirs' {uuid}")
    assert there(sim)


@pytest.mark.parametrize("word", ["--volume-is-ours", "lift"])
def test_who_looked_may_remove_it(types: Types, sim: Served, word: str) -> None:
    uuid = doubt(types, sim)
    if word == "lift":
        types(f"gnt-disk modify --lift-quarantine {uuid}")
        types(f"gnt-disk remove -f {uuid}")
    else:
        types(f"gnt-disk remove -f {word} {uuid}")
    assert not there(sim)


async def given(uuid: str, cluster: SimCluster) -> None:
    """Let an instance have a disk in quarantine, whatever led to it."""
    web1 = cluster.config.instance("web1")
    await cluster.config_store.commit(Change((successor(web1, 1000.0, disks=(uuid,)),)))


@pytest.mark.parametrize(
    "line",
    [
        "gnt-instance remove -f web1",
        "gnt-instance remove -f --ignore-failures web1",
        "gnt-instance modify --disk 0:remove web1",
        "gnt-instance modify -t sharedfile web1",
        "gnt-disk convert -t sharedfile data1",
        "gnt-disk clone data1 --name data2",
    ],
)
def test_no_road_leads_to_a_volume_of_somebodys(
    types: Types, sim: Served, line: str
) -> None:
    uuid = doubt(types, sim)
    sim.inside(lambda cluster: given(uuid, cluster))
    types(line, status=None)
    assert there(sim)
    assert types("gnt-disk list --no-headers -o uuid").strip() == uuid


def test_what_the_node_made_itself_needs_no_word(types: Types, sim: Served) -> None:
    """Its removal failed: that is doubt of another kind."""
    machines = [node.machine for node in sim.cluster.nodes.nodes.values()]
    for machine in machines:
        machine.refuse = lambda _node, command: command.argv[0].endswith(
            ("/attach", "/remove")
        )
    types(ADD, status=1)
    for machine in machines:
        machine.refuse = lambda _node, _command: False
    shown = types("gnt-disk list --no-headers -o status,unproven").split()
    assert shown == ["quarantined", "N"]
    types("gnt-disk remove -f data1")
    assert not there(sim)


# -- growth ----------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["plainsan", "usersan"])
@pytest.mark.parametrize("where", ["detached", "down", "running"])
def test_growth_is_what_the_device_says(
    types: Types, sim: Served, where: str, provider: str
) -> None:
    how = "-s 64M" + (" --access userspace" if provider == "usersan" else "")
    types(f"gnt-disk add -t ext -p {provider} {how} data1")
    if where != "detached":
        types("gnt-disk attach data1 web1")
    if where == "running":
        types("gnt-instance startup web1")
    sim.cluster.nodes.san.stunted.add(provider)
    told = types("gnt-disk grow data1 64M", status=1)
    assert "says that it grew to 128 MiB, and on node node1 it has 64 MiB" in told
    assert "Grew disk" not in told
    assert types("gnt-disk list --no-headers -o size data1") == "64M\n"
    if where == "detached":
        types("gnt-disk attach data1 web1")
        types("gnt-disk detach data1")
    assert types("gnt-cluster verify", status=None).count("data1") == 0


def test_the_size_of_a_disk_that_nobody_has_is_repaired(
    types: Types, sim: Served
) -> None:
    types("gnt-instance startup web1")
    types("gnt-disk add -t ext -p plainsan -s 128M data1")
    (name,) = volumes = sim.cluster.nodes.san.volumes
    volumes[name] |= {"size": 64}
    told = types("gnt-disk attach data1 web1", status=1)
    assert "and its record says 128 MiB" in told
    line = "gnt-cluster repair-disk-sizes --disk data1"
    assert line in told
    assert types(line) == "disk data1: size is 64 MiB\n"
    assert sim.cluster.nodes.san.attached == {}
    assert types(line) == ""
    types("gnt-disk attach data1 web1")
    assert "is attached to instance web1" in types(line, status=1)


# -- providers that nobody uses --------------------------------------------------------


def test_who_was_not_asked_is_named(types: Types) -> None:
    """By an older state no disk is a provider's that has volumes all the same."""
    told = types("gnt-storage reconcile")
    again = "gnt-storage reconcile --provider namedlist --provider san"
    assert f"Not asked: namedlist, san ({again})" in told
    assert "Not asked" not in types(again)
    types("gnt-disk add -t ext -p san -s 64M data2")
    told = types("gnt-storage reconcile", status=None)
    assert "Not asked: namedlist (gnt-storage reconcile --provider namedlist)" in told


@pytest.mark.parametrize("line", ["convert -t ext -p san", "clone --name copy"])
def test_at_most_so_much_is_not_rounded_up(
    types: Types, sim: Served, line: str
) -> None:
    types("gnt-disk add -t sharedfile -s 64M data1")
    types(f"gnt-disk {line} --rate 3.9M -n node1 data1")
    machine = sim.cluster.nodes.nodes["node1"].machine
    (copied,) = [one.argv for one in machine.ran if "convert" in one.argv]
    assert "3M" in copied
    told = types("gnt-disk convert -t sharedfile --rate 200k data1", status=1)
    assert "is not a size" in told
    told = types("gnt-disk convert -t sharedfile --rate 0.5M data1", status=1)
    assert "is less than 1M" in told
