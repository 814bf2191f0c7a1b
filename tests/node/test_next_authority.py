# SPDX-License-Identifier: BSD-2-Clause
"""One authority follows another while nodes serve, and contexts with it."""

import shutil
import ssl
from pathlib import Path

import pytest
from msgspec.structs import replace

from moorage import durable
from moorage.errors import Stale
from moorage.node.calling.client import HttpNodes
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.node.certificates.keys import Keys

from .conftest import Served, lodge
from .pinned import DAY, call, known, renewed


async def test_an_authority_follows_another_while_nodes_serve(
    served: Served, nodes: HttpNodes, authority: Authority
) -> None:
    node, old = known(served), authority.certificate
    await call(nodes, node, "authority.prepare")
    await call(nodes, node, "authority.announce")
    node = await renewed(nodes, node, by_next=True)
    await call(nodes, node)
    await call(nodes, node, "authority.switch")
    await call(nodes, node)
    assert authority.certificate != old
    await call(nodes, node, "authority.retire")
    await call(nodes, node)
    assert authority.trusted == [authority.certificate]


async def test_a_masters_key_is_revoked_on_a_connection_that_is_open(
    served: Served, authority: Authority, tmp_path: Path
) -> None:
    """Who stole it may have been connected before anybody knew."""
    stolen = tmp_path / "stolen"
    shutil.copytree(tmp_path / "master", stolen)
    thief = HttpNodes(Authority(stolen), leads=False)
    nodes, node = HttpNodes(authority), known(served)
    try:
        await call(thief, served.node)
        await call(nodes, node, "authority.renew-master")
        await call(nodes, node)  # the old key vouches for the new one
        await call(thief, served.node)
        await call(nodes, node, "authority.announce")
        with pytest.raises(Stale, match="orders of this master's key no more"):
            await call(thief, served.node)
        await call(nodes, node)
    finally:
        await thief.close()
        await nodes.close()


async def test_an_expired_authority_stops_nothing_and_can_be_followed(
    served: Served, authority: Authority, tmp_path: Path
) -> None:
    """It is an error of verify, not the end of the cluster."""
    now = authority.clock()
    later = Authority(tmp_path / "master", lambda: now + 3700 * DAY)
    assert tls.ends(later.certificate) < later.clock()
    await served.stop()
    old = tls.load_certificate((served.keys / "node.pem").read_bytes())
    durable.write(served.keys / "node.pem", tls.pem(later.sign_node(old, "node1")))
    await served.start()
    nodes, node = HttpNodes(later), known(served)
    try:
        await call(nodes, node)
        await call(nodes, node, "authority.prepare")
        await call(nodes, node, "authority.announce")
        node = await renewed(nodes, node, by_next=True)
        await call(nodes, node, "authority.switch")
        await call(nodes, node, "authority.retire")
        await call(nodes, node)
    finally:
        await nodes.close()
    assert tls.ends(later.certificate) > later.clock()


async def test_each_step_of_the_authority_can_be_repeated(
    served: Served, nodes: HttpNodes, authority: Authority, tmp_path: Path
) -> None:
    node = known(served)
    for verb in ("prepare", "prepare", "abandon", "abandon", "prepare"):
        await call(nodes, node, f"authority.{verb}")
        again = Authority(tmp_path / "master")
        assert again.certificate == authority.certificate
        await call(nodes, node)
    for verb in ("switch", "switch", "retire", "retire"):
        await call(nodes, node, f"authority.{verb}")
        Authority(tmp_path / "master").asking()


async def test_a_cluster_that_was_made_long_ago_is_read(
    served: Served, authority: Authority, tmp_path: Path
) -> None:
    """Its keys and certificates were in two files each."""
    old = tmp_path / "old"
    for name in ("ca", "master"):
        source = "ca.key" if name == "ca" else "master.pem"
        text = (authority.directory / source).read_bytes()
        key, _, signed = text.partition(b"-----BEGIN CERTIFICATE")
        durable.write(old / f"{name}.key", key)
        durable.write(old / f"{name}.pem", b"-----BEGIN CERTIFICATE" + signed)
    nodes = HttpNodes(Authority(old))
    try:
        await call(nodes, served.node)
        await call(nodes, served.node, "authority.renew-master")
        await call(nodes, served.node)
    finally:
        await nodes.close()
    assert not (old / "master.key").exists()


def test_a_context_that_changes_stands_for_the_newest(
    served_keys: Path,
) -> None:
    keys = Keys(served_keys)
    first = keys.context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_side=True)
    keys.trust(((served_keys / "ca.pem").read_text(),))
    second = keys.context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_side=True)
    assert first.context is not second.context


@pytest.fixture
def served_keys(authority: Authority, tmp_path: Path) -> Path:
    lodge(authority, tmp_path / "alone", "node1")
    return tmp_path / "alone"


async def test_all_nodes_share_one_context_until_the_masters_key_is_another(
    served: Served, nodes: HttpNodes, authority: Authority
) -> None:
    """It takes 25 KiB, and a master may have a thousand nodes."""
    made: list[ssl.SSLContext] = []
    make = authority.asking

    def asking() -> ssl.SSLContext:
        made.append(make())
        return made[-1]

    authority.asking = asking  # type: ignore[method-assign]
    for number in range(6):
        if number == 3:
            authority.renew_master()
        await call(nodes, replace(known(served), uuid=f"uuid-{number}"))
    assert len(made) == 2
