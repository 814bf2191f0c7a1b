# SPDX-License-Identifier: BSD-2-Clause
"""Nobody without the cluster's certificate gets an answer from a node."""

import asyncio
import ssl
import stat
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography import x509

from moorage import durable
from moorage.errors import Unreachable
from moorage.node.calling.client import HttpNodes
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.protocol import GetFacts

pytestmark = pytest.mark.memory

ASKED = b'{"verb": "facts", "args": {}, "term": 1}'


def sign_master(authority: Authority, key: Any) -> Any:
    return authority.sign_master(tls.self_signed(key, tls.MASTER))


def silent(*_: Any) -> None:
    pass


def asking(directory: Path) -> ssl.SSLContext:
    """Return a client's context that believes any server, as an attacker's would."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if directory.exists():
        context.load_cert_chain(directory / "pem", directory / "key")
    return context


def card(directory: Path, key: tls.Key, *chain: tls.Certificate) -> Path:
    """Lay a key and its certificate ready."""
    directory.mkdir()
    durable.write(directory / "key", tls.key_pem(key))
    durable.write(directory / "pem", b"".join(map(tls.pem, chain)))
    return directory


async def told(served: Any, context: ssl.SSLContext) -> Any:
    """Return what the node answers, in HTTP's words."""
    url = f"https://127.0.0.1:{served.port}/call"
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=ASKED, ssl=context) as answer,
    ):
        return answer.status, await answer.read()


async def test_the_master_gets_an_answer(served: Any) -> None:
    nodes = HttpNodes(served.authority)
    found = await nodes.call(served.node, GetFacts(), 1, silent)
    await nodes.close()
    assert found.hypervisors == ("kvm",)


@pytest.mark.parametrize(
    "who", ["nobody", "self-signed", "other cluster", "node", "signed by a node"]
)
async def test_others_get_none(
    who: str, served: Any, other_authority: Authority, tmp_path: Path
) -> None:
    key, mine = tls.new_key(), tmp_path / "card"
    signed = served.authority.sign_node(tls.self_signed(key, "node2"), "node2")
    if who == "self-signed":
        card(mine, key, tls.self_signed(key, tls.MASTER))
    elif who == "other cluster":
        card(mine, key, sign_master(other_authority, key))
    elif who == "node":
        card(mine, key, signed)
    elif who == "signed by a node":
        second = tls.new_key()
        forged = tmp_path / "forged"
        forged.mkdir()
        durable.write(forged / "ca.key", tls.key_pem(key) + tls.pem(signed))
        durable.write(forged / "ca.pem", tls.pem(signed))
        durable.write(forged / "master.pem", tls.key_pem(key) + tls.pem(signed))
        card(mine, second, sign_master(Authority(forged), second), signed)
    with pytest.raises((aiohttp.ClientError, ssl.SSLError)) as caught:
        await told(served, asking(mine))
    assert not isinstance(caught.value, aiohttp.ClientResponseError)
    assert served.machine.ran == []


async def test_the_masters_own_certificate_is_taken(
    served: Any, tmp_path: Path
) -> None:
    key = tls.new_key()  # so the refusals above are for what they say
    mine = card(tmp_path / "card", key, sign_master(served.authority, key))
    status, _ = await told(served, asking(mine))
    assert status == 200


async def test_plain_http_gets_no_answer(served: Any) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(b"POST /call HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
    try:
        answer = await reader.read()
    except ConnectionError:
        answer = b""
    writer.close()
    assert b"HTTP" not in answer


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
async def test_old_versions_of_tls_get_no_answer(
    served: Any, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    key = tls.new_key()
    context = asking(card(tmp_path / "c", key, sign_master(served.authority, key)))
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSVersion"):
        context.minimum_version = version
    with pytest.warns(DeprecationWarning, match="TLSVersion"):
        context.maximum_version = version
    with pytest.raises(aiohttp.ClientError):
        await told(served, context)


@pytest.mark.parametrize("who", ["another node", "a stranger", "the master itself"])
async def test_the_master_does_not_believe_others(
    who: str, served: Any, other_authority: Authority
) -> None:
    key = tls.new_key()
    asked = tls.self_signed(key, "node1")
    shown = {
        "another node": lambda: served.authority.sign_node(asked, "node2"),
        "a stranger": lambda: other_authority.sign_node(asked, "node1"),
        "the master itself": lambda: sign_master(served.authority, key),
    }[who]()
    await served.stop()
    durable.write(served.keys / "node.key", tls.key_pem(key))
    durable.write(served.keys / "node.pem", tls.pem(shown))
    await served.start()
    nodes = HttpNodes(served.authority)
    with pytest.raises(Unreachable, match="certificate") as caught:
        await nodes.call(served.node, GetFacts(), 1, silent)
    await nodes.close()
    assert caught.value.facts["sent"] is False
    assert "\n" not in caught.value.message


def test_keys_are_nobody_elses_business(authority: Authority, tmp_path: Path) -> None:
    found = list((tmp_path / "master").iterdir())
    assert {path.name for path in found} == {*("ca.key", "ca.pem", "master.pem")}
    assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o600}
    again = Authority(tmp_path / "master")
    assert again.certificate == authority.certificate


def test_a_draft_that_was_left_behind_is_no_hole(tmp_path: Path) -> None:
    draft = tmp_path / ".key"
    draft.write_bytes(b"old")
    draft.chmod(0o644)
    durable.write(tmp_path / "key", b"secret")
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


def test_a_server_that_is_called_by_its_address_is_believed(authority: Authority):
    signed = authority.sign_node(tls.request(tls.new_key(), "192.0.2.7"), "192.0.2.7")
    names = signed.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert names.value.get_values_for_type(x509.IPAddress) == [IPv4Address("192.0.2.7")]
    assert names.value.get_values_for_type(x509.DNSName) == []
