# SPDX-License-Identifier: BSD-2-Clause
"""The address that moves with the master, on simulated nodes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from moorage.api.cluster_info import cluster_info
from moorage.api.query import Sources
from moorage.config_data import ssconf
from moorage.daemons import master_address
from moorage.daemons.lead_record import moved
from moorage.errors import BadInput, Forbidden, MoorageError, WrongState
from moorage.model import Nic, apply
from moorage.model.caller import Caller, Role
from moorage.model.master_address import MasterAddress
from moorage.testing.addresses import SimAddresses
from moorage.testing.cluster import ClusterBuilder, Crash, SimCluster

IP = "192.0.2.9"
WHERE = "is to be where the master is"
SET = {"master_ip": IP, "master_netdev": "br0", "master_netmask": 24}


@pytest.fixture
async def sim(tmp_path: Path) -> AsyncIterator[SimCluster]:
    card = Nic(uuid="card", mac="aa:00:00:00:00:01", ip="192.0.2.77")
    builder = ClusterBuilder().instance("web1", nics=(card,))
    cluster = await SimCluster.start(tmp_path / "sim", builder)
    yield cluster
    await cluster.stop()


@pytest.fixture
async def led(
    sim: SimCluster, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SimCluster]:
    """Return the cluster with a master that looks after the address."""
    monkeypatch.setattr(master_address, "_EACH", 0.02)
    monkeypatch.setattr(master_address, "_AGAIN", 0.02)
    at = Sources(sim.config_store, sim.nodes, sim.engine)
    keeping = asyncio.create_task(master_address.keep(at))
    yield sim
    keeping.cancel()


def addresses(sim: SimCluster, node: str) -> SimAddresses:
    found = sim.nodes.nodes[node].machine.addresses
    assert isinstance(found, SimAddresses)
    return found


def having(sim: SimCluster, ip: str = IP) -> list[str]:
    return [name for name in sim.nodes.nodes if addresses(sim, name).has(ip)]


async def until(so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not so():  # noqa: ASYNC110 - a test may poll
            await asyncio.sleep(0.01)


async def found(sim: SimCluster, kind: str) -> list[tuple[str, str]]:
    told = (await sim.run("OP_CLUSTER_VERIFY"))[kind]
    return [(x["object"], x["message"]) for x in told if x["ecode"] == "EMASTERIP"]


async def test_it_is_set_on_the_masters_node_at_once_and_shown_everywhere(
    sim: SimCluster,
) -> None:
    assert cluster_info(sim.config)["master_netdev"] == ""
    await sim.run("OP_CLUSTER_SET_PARAMS", **SET)
    assert having(sim) == ["node1"]
    told = cluster_info(sim.config)
    assert (told["master_ip"], told["master_netmask"]) == (IP, 24)
    assert told["primary_ip_version"] == 4
    files = ssconf(sim.config)
    assert {
        "master_ip": IP,
        "master_netdev": "br0",
        "master_netmask": "24",
    }.items() <= (files.items())
    await sim.run("OP_CLUSTER_SET_PARAMS", master_ip="192.0.2.10")
    assert having(sim) == []
    assert having(sim, "192.0.2.10") == ["node1"]
    assert sim.config.cluster.master_netmask == 32
    await sim.run("OP_CLUSTER_SET_PARAMS", master_netdev="")
    assert having(sim, "192.0.2.10") == []
    assert sim.config.cluster.master_ip == sim.config.node("node1").primary_ip


async def test_it_stays_on_record_when_another_node_leads(sim: SimCluster) -> None:
    def led_by_node2() -> str:
        return apply(sim.config, moved(sim.config, "node2", 9)).cluster.master_ip

    assert led_by_node2() == sim.config.node("node2").primary_ip
    await sim.run("OP_CLUSTER_SET_PARAMS", **SET)
    assert led_by_node2() == IP


@pytest.mark.parametrize(
    ("fields", "error", "why"),
    [
        ({"master_ip": IP}, BadInput, "give the device"),
        ({"master_netdev": "br0"}, BadInput, "give the address"),
        ({"master_netmask": 24}, BadInput, "give the address"),
        (SET | {"master_ip": "node9"}, BadInput, "is one of IP, not 'node9'"),
        (SET | {"master_ip": "127.0.0.3"}, BadInput, "cannot be the master's"),
        (SET | {"master_ip": "fe80::1"}, BadInput, "cannot be the master's"),
        (SET | {"master_ip": "192.0.2.77"}, BadInput, "is instance web1's"),
        (SET | {"master_netdev": "br/0"}, BadInput, "not the name of a network device"),
        (SET | {"master_netmask": 33}, BadInput, "1 to 32 bits"),
        (
            SET | {"master_netdev": "eth9"},
            WrongState,
            "node3 cannot have 192.0.2.9: it",
        ),
    ],
)
async def test_what_cannot_be_is_refused_and_changes_nothing(
    sim: SimCluster, fields: dict[str, object], error: type[MoorageError], why: str
) -> None:
    addresses(sim, "node3").devices = {"br0"}
    before = sim.config
    with pytest.raises(error, match=why):
        await sim.run("OP_CLUSTER_SET_PARAMS", **fields)
    assert sim.config.cluster == before.cluster


async def test_it_is_no_nodes_own(sim: SimCluster) -> None:
    await sim.run("OP_NODE_SET_PARAMS", node_name="node2", secondary_ip="192.0.2.9")
    with pytest.raises(BadInput, match="is node node2's own"):
        await sim.run("OP_CLUSTER_SET_PARAMS", **SET)


async def test_it_is_roots_to_say(sim: SimCluster) -> None:
    ann = Caller("ann", "rapi", role=Role.WRITE)
    with pytest.raises(Forbidden, match="may be anybody's"):
        await sim.engine.submit([{"OP_ID": "OP_CLUSTER_SET_PARAMS", **SET}], ann)


async def test_one_that_another_machine_has_is_not_recorded(sim: SimCluster) -> None:
    addresses(sim, "node1").taken.add(IP)
    with pytest.raises(MoorageError, match="somebody else's"):
        await sim.run("OP_CLUSTER_SET_PARAMS", **SET)
    assert sim.config.cluster.master_netdev == ""


async def test_who_leads_takes_it_off_others_and_keeps_it(led: SimCluster) -> None:
    await addresses(led, "node2").hold(MasterAddress(IP, "br0", 24), 60)
    await led.run("OP_CLUSTER_SET_PARAMS", **SET)
    await until(lambda: having(led) == ["node1"])
    addresses(led, "node1").held.clear()
    await until(lambda: having(led) == ["node1"])
    addresses(led, "node1").taken.add(IP)
    addresses(led, "node1").held.clear()
    await asyncio.sleep(0.1)
    assert having(led) == []
    addresses(led, "node1").taken.clear()
    await until(lambda: having(led) == ["node1"])


async def test_it_is_down_until_it_is_activated(led: SimCluster) -> None:
    with pytest.raises(WrongState, match="has no address that moves"):
        await led.run("OP_CLUSTER_ACTIVATE_MASTER_IP")
    await led.run("OP_CLUSTER_SET_PARAMS", **SET)
    await led.run("OP_CLUSTER_DEACTIVATE_MASTER_IP")
    await asyncio.sleep(0.1)
    assert having(led) == []
    said = [("cluster", f"the master's address {IP} is down, as it was told to be")]
    assert await found(led, "warnings") == said
    await led.run("OP_CLUSTER_ACTIVATE_MASTER_IP")
    assert having(led) == ["node1"]
    assert await found(led, "warnings") == []


@pytest.mark.parametrize("up", [True, False])
async def test_a_crash_at_any_point_leaves_what_can_be_asked_for_again(
    sim: SimCluster, up: bool
) -> None:
    await sim.run("OP_CLUSTER_SET_PARAMS", **SET)
    wanted, other = ("ACTIVATE", "DEACTIVATE") if up else ("DEACTIVATE", "ACTIVATE")
    crashes = 0
    while True:
        await sim.run(f"OP_CLUSTER_{other}_MASTER_IP")
        sim.crash_at = len(sim.points) + crashes
        number = await sim.submit(f"OP_CLUSTER_{wanted}_MASTER_IP")
        try:
            await sim.finished(number)
        except Crash:
            await sim.crash()
        else:
            break
        crashes += 1
        sim.crash_at = None
        await sim.boot()
        job = await sim.finished(number)
        done = sim.config.cluster.master_ip_active is up
        assert job.status == ("success" if done else "error")
        await sim.run(f"OP_CLUSTER_{wanted}_MASTER_IP")
        assert sim.config.cluster.master_ip_active is up
        assert having(sim) == (["node1"] if up else [])
    assert crashes > 3


async def test_verify_says_where_it_is_that_should_not_be(sim: SimCluster) -> None:
    await sim.run("OP_CLUSTER_SET_PARAMS", **SET)
    assert await found(sim, "errors") == []
    await addresses(sim, "node2").hold(MasterAddress(IP, "br0", 24), 60)
    addresses(sim, "node1").held.clear()
    addresses(sim, "node3").lasting[IP] = "eth0"
    assert await found(sim, "errors") == [
        ("node node1", f"the master's address {IP} is not up on it"),
        (
            "node node2",
            f"it has the master's address {IP} on br0, which {WHERE}",
        ),
        ("node node3", f"it has the master's address {IP} on eth0 for good"),
    ]
    addresses(sim, "node3").devices = {"eth0"}
    assert await found(sim, "warnings") == [
        (
            "node node3",
            f"it cannot have the master's address {IP}: it has no network device br0",
        ),
    ]


async def test_a_node_takes_it_from_the_master_alone_and_not_for_long(
    sim: SimCluster,
) -> None:
    agent = sim.nodes.nodes["node2"].agent
    told = {"address": {"ip": IP, "device": "br0", "bits": 24}, "seconds": 15}
    await agent.handle("address.hold", told, 8, lambda *_: None)
    with pytest.raises(MoorageError, match="term 7 is over"):
        await agent.handle("address.hold", told, 7, lambda *_: None)
    for wrong in ({"seconds": 61}, {"seconds": 0}):
        with pytest.raises(BadInput, match="1 to 60 s"):
            await agent.handle("address.hold", told | wrong, 8, lambda *_: None)
    with pytest.raises(BadInput, match="not the name of a network device"):
        await agent.handle(
            "address.hold",
            told | {"address": {"ip": IP, "device": "a b", "bits": 24}},
            8,
            lambda *_: None,
        )
