# SPDX-License-Identifier: BSD-2-Clause
"""Every verb that is declared, and each with arguments that it takes."""

from typing import Any

from msgspec.structs import fields

from moorage.model import Disk, Nic
from moorage.model.commits import Head, Write
from moorage.model.export import Dump, Export, Form
from moorage.model.master_address import MasterAddress
from moorage.protocol import Verb, declared, name_of
from moorage.protocol.node import Peer

DISK = Disk(uuid="d", dev_type="file", logical_id=("file", "/f/d"), size=64, epoch=4)
DUMP = Dump(file="disk0", form=Form.RAW, size=64)
GIVEN: dict[Any, Any] = {
    Disk: DISK,
    tuple[Disk, ...]: (DISK,),
    str: "x",
    bytes: b"x",
    tuple[str, ...]: ("x",),
    Dump: DUMP,
    tuple[Dump, ...]: (DUMP,),
    Nic: Nic(uuid="n", mac="aa:00:00:00:00:01"),
    Export: Export(name="x", dumps=(DUMP,)),
    Head: Head(1, 1, 1),
    MasterAddress: MasterAddress("192.0.2.9", "br0", 24),
    tuple[Peer, ...]: (Peer(name="x", address="192.0.2.1", port=1811),),
    tuple[Write, ...]: ((("node", "x"), b"x"), (("job", "1"), None)),
    dict[str, bytes]: {"ca.pem": b"x"},
    dict[str, str]: {"A": "b"},
    bool: True,
}
EVERY = {name_of(kind): kind for kind in declared()}


def filled(kind: type[Verb[object]]) -> Any:
    """Return a verb with all its required arguments, and every disk that it takes."""
    return kind(
        **{
            one.name: GIVEN.get(one.type, 1)
            for one in fields(kind)
            if one.required or one.type in (Disk, tuple[Disk, ...])
        }
    )
