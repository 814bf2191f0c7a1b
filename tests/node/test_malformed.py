# SPDX-License-Identifier: BSD-2-Clause
"""Steps with disks that no master makes: each verb refuses them with a sentence.

They come with a master's certificate: from a record that was damaged, a master of
another version, or somebody who tries what an agent does then.
"""

from itertools import product
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import pytest
from msgspec import NODEFAULT, Struct, UnsetType, structs

from moorage.errors import MoorageError
from moorage.model import Disk
from moorage.node.calling.client import HttpNodes
from moorage.node.verbs import VERBS
from moorage.protocol import Verb
from moorage.storage.templates import TEMPLATES
from moorage.units import Mib
from support.sampling import EVERY_OTHER, one_in, sampled

IDS: list[tuple[Any, ...]] = [
    (),
    ("x",),
    ("x", "y", "z"),
    (None, None),
    (["x"], {"y": 1}),
    (1, 2),
    ("node1", "node2", "port", 0, 0, "secret"),
    ("node1", "node2", 11000, None, 0, "secret"),
    ("node1", "node2", 11000, 0, 0, "secret"),
    ("node1", "node2", 11000, 0, 0),
]


def disk(template: str, logical_id: tuple[Any, ...], *children: Disk) -> Disk:
    return Disk(
        uuid="d",
        dev_type=template,
        logical_id=logical_id,
        size=Mib(64),
        children=children,
        nodes=("node1",),
    )


def filled(kind: type[Struct], bad: Disk) -> Any:
    """Return the smallest one of a kind, and this disk wherever it takes one."""
    given: dict[str, Any] = {}
    for one in structs.fields(kind):
        needed = one.default is NODEFAULT and one.default_factory is NODEFAULT
        if needed or "Disk" in f"{one.type}":
            given[one.name] = value(one.type, bad)
    return kind(**given)


def value(kind: Any, bad: Disk) -> Any:
    if kind is Disk:
        return bad
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return value(next(a for a in args if a not in (NoneType, UnsetType)), bad)
    if origin is tuple:
        return tuple(value(one, bad) for one in args if one is not ...)
    if origin in (dict, list):
        return origin()
    if isinstance(kind, type) and issubclass(kind, Struct):
        return filled(kind, bad)
    return "x" if kind in (str, Any) or origin else 1


@one_in(4, EVERY_OTHER)
@pytest.mark.parametrize("name", sorted(TEMPLATES))
async def test_a_malformed_disk_is_refused_with_a_sentence(
    served: Any, authority: Any, name: str, step: int
) -> None:
    nodes = HttpNodes(authority)
    broke = []
    kinds = [kind for kind, _ in VERBS.values() if "Disk" in f"{fields(kind)}"]
    bad = [disk(name, one) for one in IDS]
    bad += [disk(name, IDS[8], disk("plain", one), disk("plain", ())) for one in IDS]
    try:
        for kind, one in sampled(list(product(kinds, bad)), step, name):
            call = filled(kind, one)
            try:
                await nodes.call(served.node, call, 1, lambda *_: None)
            except MoorageError as error:
                if "internal error" in error.message:
                    broke.append((kind.__name__, one.logical_id, error.message))
    finally:
        await nodes.close()
    assert kinds
    assert broke == []


def fields(kind: type[Verb[object]]) -> list[Any]:
    return [one.type for one in structs.fields(kind)]
