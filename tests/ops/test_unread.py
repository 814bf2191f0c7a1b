# SPDX-License-Identifier: BSD-2-Clause
"""No field of a request is dropped in silence: it is read, or declared as not read."""

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ForwardRef, get_args, get_origin

import pytest
from msgspec.structs import fields

from moorage.errors import NotSupported
from moorage.jobs import Case, Operation
from moorage.jobs.unread import Idle, Moot, Unsupported, unread
from moorage.ops import OPERATIONS, parse
from moorage.testing.cluster import ClusterBuilder, SimCluster

KINDS = [pytest.param(kind, id=op_id) for op_id, kind in sorted(OPERATIONS.items())]


def read(kind: type[Operation]) -> set[str]:
    """Return the fields that an operation's own code looks at, and that of its case."""
    found: set[str] = set()
    for one in kind.__mro__:
        if issubclass(one, Operation) and one.__module__ != Operation.__module__:
            known = vars(sys.modules[one.__module__])
            for read in (one, *_cases(known, kind)):
                tree = ast.parse(textwrap.dedent(inspect.getsource(read)))
                found.update(_named(tree, known))
    return found


def _cases(known: dict[str, Any], kind: type[Operation]) -> Iterator[type]:
    """Yield the cases of an operation: ``class NewDisk(Case["DiskAdd"])``."""
    kinds = {one.__name__ for one in kind.__mro__}
    for one in known.values():
        for base in getattr(one, "__orig_bases__", ()):
            if get_origin(base) is Case:
                (of,) = get_args(base)
                name = of.__forward_arg__ if isinstance(of, ForwardRef) else of.__name__
                if name in kinds:
                    yield one


def _named(tree: ast.AST, known: dict[str, Any]) -> Iterator[str]:
    """Yield ``x`` of ``self.x``, and the words that ``getattr`` may get."""
    nodes = list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield from [node.attr] if node.value.id in {"self", "asked"} else []
        elif isinstance(node, ast.Attribute) and _is_request(node.value):
            yield node.attr
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    if "getattr" in names:
        constants = (n.value for n in nodes if isinstance(n, ast.Constant))
        yield from (word for word in constants if isinstance(word, str))
        for value in (known.get(name) for name in names):
            if isinstance(value, tuple | frozenset | dict):
                yield from (word for word in value if isinstance(word, str))


def _is_request(node: ast.AST) -> bool:
    """Whether it says ``self.request``."""
    return isinstance(node, ast.Attribute) and node.attr == "request"


@pytest.mark.parametrize("kind", KINDS)
def test_each_field_is_read_or_declared(kind: type[Operation]) -> None:
    known, declared = {one.name for one in fields(kind)}, set(unread(kind))
    forgotten = known - read(kind) - declared
    assert not forgotten, f"neither read nor declared as unread: {sorted(forgotten)}"
    lies = declared & read(kind)
    assert not lies, f"declared as unread, but read: {sorted(lies)}"


def test_a_reason_is_a_part_of_a_sentence() -> None:
    for kind in OPERATIONS.values():
        for name, mark in unread(kind).items():
            assert mark.why, name
            assert not mark.why.endswith("."), mark.why


def test_the_three_ways() -> None:
    marks = unread(OPERATIONS["OP_INSTANCE_CREATE"])
    assert isinstance(marks["ip_check"], Moot)
    assert isinstance(marks["file_driver"], Unsupported)
    assert unread(OPERATIONS["OP_DISK_DETACH"]) == {}


@pytest.mark.parametrize(
    ("op_id", "more", "word"),
    [
        ("OP_INSTANCE_FAILOVER", {"cleanup": True}, "cleanup"),
        ("OP_INSTANCE_CREATE", {"file_driver": "blktap"}, "file_driver"),
    ],
)
def test_what_there_is_not_is_refused(op_id, more, word) -> None:
    opcode = {"OP_ID": op_id, "instance_name": "web1"}
    parse(opcode)
    with pytest.raises(NotSupported, match=word) as caught:
        parse(opcode | more)
    assert caught.value.facts["field"] == word


def test_what_asks_for_nothing_is_taken() -> None:
    more = {"ip_check": False, "file_driver": "loop", "snode": None}
    parse({"OP_ID": "OP_INSTANCE_CREATE", "instance_name": "web1", **more})


async def test_what_has_no_effect_stands_in_the_log(tmp_path: Path) -> None:
    idle = [
        (op_id, name)
        for op_id, kind in OPERATIONS.items()
        for name, mark in unread(kind).items()
        if isinstance(mark, Idle) and op_id == "OP_INSTANCE_DEACTIVATE_DISKS"
    ]
    builder = ClusterBuilder().disk("root").instance("web1", "node1", ("root",))
    cluster = await SimCluster.start(tmp_path, builder)
    for op_id, name in idle:
        number = await cluster.submit(op_id, instance_name="web1", **{name: True})
        job = await cluster.finished(number)
        assert any(f"Warning: {name} has no effect" in e[3] for e in job.ops[0].log)
        number = await cluster.submit(op_id, instance_name="web1")
        job = await cluster.finished(number)
        assert not any("Warning" in entry[3] for entry in job.ops[0].log)
    await cluster.stop()
