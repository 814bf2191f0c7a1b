# SPDX-License-Identifier: BSD-2-Clause
"""New keys and certificates: whatever dies in the middle, nobody is shut out."""

from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature

from moorage import durable
from moorage.errors import BadInput, MoorageError, Unreachable, WrongState
from moorage.model import Change, Node, successor
from moorage.node.calling import key_issuing
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.ops import certificates
from moorage.protocol import Call, GetFacts, Report, TellMasters
from moorage.testing.cluster import ClusterBuilder, Crash, SimCluster
from moorage.testing.nodes import SimNode, SimNodes

DAY = 86400.0
NODES = {"node_certificates": True}
ALL = {"cluster_certificate": True}


class KeyedNodes(SimNodes):
    """Simulated nodes with real keys, which are looked at as TLS would."""

    cluster: SimCluster

    def __init__(self, directory: Path, authority: Authority) -> None:
        super().__init__(directory)
        self.authority = authority

    def add(self, name: str) -> SimNode:
        keys = self._directory / f"{name}-keys"
        key = tls.new_key()
        signed = self.authority.sign_node(tls.self_signed(key, name), name)
        durable.write(keys / "node.pem", tls.key_pem(key) + tls.pem(signed))
        durable.write(keys / "ca.pem", tls.pem(self.authority.own))
        node = SimNode(name, self._directory / name, self.san, keys)
        self.nodes[name] = node
        return node

    async def call(self, node: Node, call: Call, term: int, report: Report) -> Any:
        if isinstance(call, TellMasters):
            call = certificates.masters(self.cluster.config)
            if self.authority.own not in map(_read, call.certificates):
                return None  # a master does not tell before its key is on record
        if key_issuing.goes_nowhere(call):
            return key_issuing.done_here(self.authority, call)
        node = key_issuing.believed(node, call)
        shown = self._shown(node)
        sent = key_issuing.outgoing(self.authority, node.name, call)
        result = await super().call(node, sent, term, report)
        return key_issuing.incoming(self.authority, node.name, call, result, shown)

    def _shown(self, node: Node) -> str:
        keys = self.nodes[node.name].keys
        assert keys
        own = tls.load_certificate((keys.directory / "node.pem").read_bytes())
        shown = tls.pin(tls.public(own))
        authorities = tls.load_all((keys.directory / "ca.pem").read_bytes())
        known = not node.pins or shown in node.pins
        trusted = signed(own, self.authority.trusted)
        obeyed = self.authority.own in authorities or signed(
            self.authority.own, authorities
        )
        if not (known and trusted and obeyed):
            raise Unreachable(f"{node.name} is shut out", sent=False, silent=False)
        return shown


def _read(text: str) -> tls.Certificate:
    return tls.load_certificate(text.encode())


def signed(certificate: tls.Certificate, authorities: list[tls.Certificate]) -> bool:
    for one in authorities:
        try:
            certificate.verify_directly_issued_by(one)
        except (ValueError, InvalidSignature):
            continue
        return True
    return False


async def keyed(directory: Path, nodes: int = 2) -> SimCluster:
    """Return a cluster whose nodes have keys; none of them is noted yet."""
    (directory / "master").mkdir(parents=True)
    cluster = SimCluster(directory / "nodes")
    authority = Authority.make(directory / "master", "one")
    cluster.nodes = KeyedNodes(directory / "nodes", authority)
    cluster.nodes.cluster = cluster
    builder = ClusterBuilder(nodes).disk("d1")
    builder.instance("web1", "node1", ("d1",), admin_state="up", disks_active=True)
    await cluster.make(builder)
    return cluster


async def renew(cluster: SimCluster, **fields: Any) -> list[MoorageError]:
    """Renew, and return what went wrong in the jobs that came of it."""
    result = await cluster.run("OP_CLUSTER_RENEW_CRYPTO", **fields)
    jobs = [await cluster.finished(number) for taken, number in result["jobs"] if taken]
    return [job.ops[0].error for job in jobs if job.ops[0].error]


async def reached(cluster: SimCluster) -> None:
    """Fail unless the master reaches every node."""
    for node in cluster.config.named(Node):
        facts = GetFacts()
        await cluster.nodes.call(
            node, facts, cluster.config_store.term, lambda *_: None
        )


def pins(cluster: SimCluster) -> list[tuple[str, ...]]:
    return [node.pins for node in cluster.config.named(Node)]


async def test_each_node_gets_a_key_and_is_known_by_it(tmp_path: Path) -> None:
    """Also in a cluster that was made when no key was noted."""
    cluster = await keyed(tmp_path)
    assert pins(cluster) == [(), ()]
    master = cluster.nodes.authority.own  # type: ignore[attr-defined]
    for _ in range(2):
        before = pins(cluster)
        assert await renew(cluster, **NODES) == []
        assert [len(one) for one in pins(cluster)] == [1, 1]
        assert not set(before) & set(pins(cluster))
        await reached(cluster)
    assert cluster.nodes.authority.own != master  # type: ignore[attr-defined]
    await cluster.stop()


async def test_a_new_authority_renews_all(tmp_path: Path) -> None:
    cluster = await keyed(tmp_path)
    authority = cluster.nodes.authority  # type: ignore[attr-defined]
    before = authority.certificate
    await renew(cluster, **ALL)
    assert authority.certificate != before
    assert authority.trusted == [authority.certificate]
    await reached(cluster)
    for node in cluster.nodes.nodes.values():
        assert node.keys
        known = tls.load_all((node.keys.directory / "ca.pem").read_bytes())
        assert known[0] == authority.own
        assert len(known) == 2
    assert await renew(cluster, **NODES) == []
    await cluster.stop()


@pytest.mark.parametrize(
    ("fields", "step"),
    [
        pytest.param({"node_name": "node2"}, 1, id="node"),
        pytest.param(ALL, 5, id="some-of-all"),
        pytest.param(ALL, 1, id="all", marks=pytest.mark.slow),
    ],
)
async def test_a_crash_at_any_point_leaves_everybody_reachable(
    fields: dict[str, Any], step: int, tmp_path: Path
) -> None:
    name = "OP_CLUSTER_RENEW_CRYPTO" if fields is ALL else "OP_NODE_RENEW_CRYPTO"
    cluster = await keyed(tmp_path / "whole")
    await cluster.run(name, **fields)
    points = len(cluster.points)
    assert points > (30 if fields is ALL else 6)
    await cluster.stop()
    for point in range(0, points, step):
        cluster = await keyed(tmp_path / f"{point}")
        cluster.crash_at = point
        number = await cluster.submit(name, **fields)
        with pytest.raises(Crash):
            await cluster.finished(number)
        await cluster.crash()
        await reached(cluster)
        cluster.crash_at = None
        await cluster.boot()
        await cluster.finished(number)
        await reached(cluster)
        assert {len(one) for one in pins(cluster)} <= {0, 1}
        await cluster.run(name, **fields)
        await reached(cluster)
        await cluster.stop()


async def test_nodes_get_their_keys_whichever_master_ends_the_job(
    tmp_path: Path,
) -> None:
    """The jobs that follow are of the promise: a success without them is none."""
    cluster = await keyed(tmp_path / "whole")
    await cluster.run("OP_CLUSTER_RENEW_CRYPTO", **NODES)
    points = len(cluster.points)
    await cluster.stop()
    ended = []
    for point in range(points):
        cluster = await keyed(tmp_path / f"{point}")
        cluster.crash_at = point
        number = await cluster.submit("OP_CLUSTER_RENEW_CRYPTO", **NODES)
        with pytest.raises(Crash):
            await cluster.finished(number)
        await cluster.crash()
        cluster.crash_at = None
        await cluster.boot()
        job = await cluster.finished(number)
        ended.append(job.status)
        if job.status == "success":
            for _, one in job.ops[0].result["jobs"]:
                assert (await cluster.finished(one)).status == "success"
            assert [len(one) for one in pins(cluster)] == [1, 1]
        await cluster.stop()
    assert "success" in ended


async def test_a_master_takes_one_step_to_its_next_key_however_often_it_begins(
    tmp_path: Path,
) -> None:
    """Two would lead it away from nodes that know the one before."""
    cluster = await keyed(tmp_path)
    authority = cluster.nodes.authority  # type: ignore[attr-defined]
    await cluster.run("OP_CLUSTER_RENEW_CRYPTO", **ALL)
    points = [*cluster.points]
    given = points.index("during give the master its new key")
    cluster.crash_at = len(points) + given
    number = await cluster.submit("OP_CLUSTER_RENEW_CRYPTO", **ALL)
    with pytest.raises(Crash):
        await cluster.finished(number)
    await cluster.crash()
    key = authority.own
    cluster.crash_at = None
    await cluster.boot()
    await cluster.finished(number)
    assert authority.own == key
    await reached(cluster)
    await cluster.stop()


async def test_a_lost_reply_is_asked_for_again(tmp_path: Path) -> None:
    for lost in range(2):
        cluster = await keyed(tmp_path / f"{lost}")
        cluster.nodes.lose_reply = {lost}
        await renew(cluster, **NODES)
        await cluster.stop()
        await reached(cluster)


async def test_a_node_that_dies_in_the_middle_is_known_by_both_keys(
    tmp_path: Path,
) -> None:
    cluster = await keyed(tmp_path)
    await cluster.run("OP_NODE_RENEW_CRYPTO", node_name="node2")
    (old,) = pins(cluster)[1]

    async def off(name: str) -> None:
        if name == "before give node node2 a certificate of its new key":
            cluster.nodes.nodes["node2"].lose_power()
            await cluster.run(
                "OP_NODE_SET_PARAMS", node_name="node2", offline=True, force=True
            )

    undisturbed, cluster.extra_point = cluster.extra_point, off
    error = await cluster.refused("OP_NODE_RENEW_CRYPTO", node_name="node2")
    cluster.extra_point = undisturbed
    assert "node2" in error.message
    assert old in pins(cluster)[1]
    assert len(pins(cluster)[1]) == 2
    cluster.nodes.nodes["node2"].boot()
    await cluster.run("OP_NODE_SET_PARAMS", node_name="node2", offline=False)
    await reached(cluster)
    await cluster.run("OP_NODE_RENEW_CRYPTO", node_name="node2")
    assert len(pins(cluster)[1]) == 1
    await cluster.stop()


async def test_a_new_authority_shuts_nobody_out_unasked(tmp_path: Path) -> None:
    cluster = await keyed(tmp_path, 3)
    authority = cluster.nodes.authority  # type: ignore[attr-defined]
    before = authority.certificate
    cluster.nodes.nodes["node3"].lose_power()
    error = await cluster.refused("OP_CLUSTER_RENEW_CRYPTO", **ALL)
    assert isinstance(error, Unreachable)
    await cluster.run("OP_NODE_SET_PARAMS", node_name="node3", offline=True, force=True)
    error = await cluster.refused("OP_CLUSTER_RENEW_CRYPTO", **ALL)
    assert isinstance(error, WrongState)
    assert "node node3 is marked offline" in error.message
    assert authority.trusted == [before]
    await renew(cluster, **ALL, force=True)
    assert authority.certificate != before
    await cluster.stop()


async def test_records_that_are_older_than_the_keys_have_a_way_out(
    tmp_path: Path,
) -> None:
    """A copy of the store was put back."""
    cluster = await keyed(tmp_path, 1)
    await renew(cluster, **NODES)
    (node,) = cluster.config.named(Node)
    await cluster.config_store.commit(Change((successor(node, 1.0, pins=("0" * 64,)),)))
    error = await cluster.refused("OP_NODE_RENEW_CRYPTO", node_name="node1")
    assert isinstance(error, Unreachable)
    assert await renew(cluster, **NODES, force=True) == []
    await reached(cluster)
    await cluster.stop()


async def test_nothing_named_is_nothing_renewed(tmp_path: Path) -> None:
    cluster = await keyed(tmp_path, 1)
    error = await cluster.refused("OP_CLUSTER_RENEW_CRYPTO")
    assert isinstance(error, BadInput)
    await cluster.stop()
