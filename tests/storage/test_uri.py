# SPDX-License-Identifier: BSD-2-Clause
"""URIs of providers, as QEMU's block options."""

from pathlib import Path

import pytest

from moorage.errors import BadInput, NotSupported
from moorage.model.hvparams import Parameters
from moorage.node.hypervisors.kvm.guest_dir import Home
from moorage.node.hypervisors.kvm.migration import Way
from moorage.protocol import Door
from moorage.storage.uri import inet, protocol_node

UNIX = {"type": "unix", "path": "/run/x.sock"}
IQN = "iqn.2026-01.org.example:disks"

KNOWN = {
    "nbd:unix:/run/x.sock": {"driver": "nbd", "server": UNIX},
    "nbd:unix:/run/x.sock:exportname=d:1": {
        "driver": "nbd",
        "server": UNIX,
        "export": "d:1",
    },
    "nbd+unix:///d?socket=/run/x.sock": {
        "driver": "nbd",
        "server": UNIX,
        "export": "d",
    },
    "nbd+unix:///?socket=/run/x.sock": {"driver": "nbd", "server": UNIX},
    "nbd:san:10810": {"driver": "nbd", "server": inet("san", "10810")},
    "nbd:[fd00::1]:10810:exportname=d": {
        "driver": "nbd",
        "server": inet("fd00::1", "10810"),
        "export": "d",
    },
    "nbd://san/d%20e": {
        "driver": "nbd",
        "server": inet("san", "10809"),
        "export": "d e",
    },
    "NBD://san:1/d": {"driver": "nbd", "server": inet("san", "1"), "export": "d"},
    "rbd:pool/image": {"driver": "rbd", "pool": "pool", "image": "image"},
    r"rbd:pool/ns/im\:age@snap:id=admin:conf=/etc/c.conf:mon_host=a\:1;[fd00\:\:1]": {
        "driver": "rbd",
        "pool": "pool",
        "namespace": "ns",
        "image": "im:age",
        "snapshot": "snap",
        "conf": "/etc/c.conf",
        "user": "admin",
        "server": [{"host": "a", "port": "1"}, {"host": "fd00::1", "port": "6789"}],
    },
    f"iscsi://san/{IQN}/3": {
        "driver": "iscsi",
        "transport": "tcp",
        "portal": "san:3260",
        "target": IQN,
        "lun": 3,
    },
    "gluster://brick/vol/dir/image": {
        "driver": "gluster",
        "volume": "vol",
        "path": "dir/image",
        "server": [inet("brick", "24007")],
    },
    "gluster+unix:///vol/image?socket=/run/x.sock&debug=4": {
        "driver": "gluster",
        "volume": "vol",
        "path": "image",
        "server": [UNIX],
        "debug": 4,
    },
    "file:/srv/a:b": {"driver": "file", "filename": "/srv/a:b"},
    "file:///srv/a%20b": {"driver": "file", "filename": "/srv/a b"},
    'json:{"driver": "null-co", "size": 4096, "node-name": "mine"}': {
        "driver": "null-co",
        "size": 4096,
    },
}


@pytest.mark.requirement("S0-65", "S0-69")
@pytest.mark.parametrize("uri", KNOWN)
def test_a_known_uri_becomes_block_options(uri):
    assert protocol_node(uri) == KNOWN[uri]


@pytest.mark.parametrize(
    "uri",
    [
        "vitastor:image=x",
        "/srv/image",
        "rbd:pool/image:key=secret",
        "iscsi://me%secret@san/iqn/1",
        "nbd://san/d?tls=on",
        "gluster://brick/vol/image?user=x",
    ],
)
def test_what_kvm_does_not_know_is_refused_in_one_sentence(uri):
    with pytest.raises(NotSupported) as refused:
        protocol_node(uri)
    assert refused.value.message
    assert "\n" not in refused.value.message


@pytest.mark.parametrize(
    "uri",
    [
        "nbd:unix:",
        "nbd:san",
        "nbd:///d",
        "nbd+unix:///d",
        "nbd://san:port/d",
        "rbd:",
        "rbd:image",
        "rbd:pool/image:conf",
        "iscsi://san/iqn",
        "iscsi://san/iqn/x",
        "gluster://brick/vol",
        "gluster:///vol/image",
        "file:",
        "json:",
        "json:[]",
        "json:{}",
        'json:{"driver": ""}',
    ],
)
def test_a_uri_that_lacks_a_part_is_bad_input(uri):
    with pytest.raises(BadInput, match="is not a valid"):
        protocol_node(uri)


KEY = "ab" * 32


@pytest.mark.parametrize(
    ("address", "door"),
    [
        ("exec:/bin/sh", Door(port=1, key=KEY)),
        ("node2", Door(port=1, key=KEY)),
        ("fe80::1%eth0", Door(port=1, key=KEY)),
        ("10.0.0.2", Door(port=1)),
        ("10.0.0.2", Door(port=1, key=KEY, place="exec:/bin/sh")),
    ],
)
def test_a_guest_goes_to_a_port_behind_a_key_and_nowhere_else(
    tmp_path: Path, address: str, door: Door
) -> None:
    home = Home(tmp_path, "u")
    assert Way(home, "10.0.0.2", Door(port=1, key=KEY), Parameters())
    with pytest.raises(BadInput, match=r"a guest (goes|does not go) to"):
        Way(home, address, door, Parameters())
