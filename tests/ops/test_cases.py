# SPDX-License-Identifier: BSD-2-Clause
"""What a request comes to is decided once a view, and anew on another one."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from functools import cached_property
from itertools import count
from pathlib import Path

import pytest

from moorage.jobs import Operation, View, once
from moorage.model import StoragePool
from moorage.ops import OPERATIONS
from moorage.ops.disk.add import DiskAdd
from moorage.ops.volumes.disk_words import DiskWords
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.scenarios import harbour


class Asking(Operation, frozen=True, kw_only=True):
    """Asks for a number, and notes how often."""

    op_id = "OP_TEST_ASKING"

    @cached_property
    def asked(self) -> Iterator[int]:
        return count(1)

    @once
    def number(self, _view: View) -> int:
        return next(self.asked)


async def test_a_choice_is_made_once_a_view(tmp_path: Path) -> None:
    cluster = await SimCluster.start(tmp_path, ClusterBuilder())
    config, request = cluster.config, Asking()
    first, second = View(config), View(config)
    assert [request.number(first), request.number(first)] == [1, 1]
    assert [request.number(second), request.number(first)] == [2, 1]
    assert Asking().number(first) == 1  # another request, and an answer of its own
    await cluster.stop()


async def test_words_are_read_again_when_their_pool_is_another(tmp_path: Path) -> None:
    cluster = await harbour(tmp_path)
    (pool,) = [one for one in cluster.config.all(StoragePool) if one.name == "nas"]
    words = DiskWords({"pool": "nas", "size": 8}, template=None, params={})
    before = words.read(cluster.config)
    assert words.read(cluster.config) is before
    # Something else is changed: what was read holds.
    await cluster.run("OP_DISK_RENAME", disk="root1", new_name="root9")
    assert words.read(cluster.config) is before
    await cluster.run(
        "OP_STORAGE_POOL_SET_PARAMS", pool_name="nas", volume_name="v-{uuid}"
    )
    after = words.read(cluster.config)
    assert after.pool != pool
    assert after.pool == cluster.config.pool("nas")
    await cluster.stop()


def test_a_request_that_names_its_node_has_read_its_words() -> None:
    request = DiskAdd(disk_template="ext", provider="san", size=8)
    chosen = request.naming(node="node2")
    assert "words" not in vars(chosen)
    words = request.words
    chosen = request.naming(node="node2")
    assert chosen.words is words
    assert (chosen.node, request.node) == ("node2", None)


@pytest.mark.parametrize("op_id", sorted(OPERATIONS))
def test_what_is_read_of_a_request_is_no_choice(op_id: str) -> None:
    """What `naming` takes along must not depend on the fields that it sets."""
    trees = [
        ast.parse(textwrap.dedent(inspect.getsource(one)))
        for one in OPERATIONS[op_id].__mro__
        if issubclass(one, Operation) and one is not Operation
    ]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    named = {
        word.arg
        for node in nodes
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "self.naming"
        for word in node.keywords
    }
    read = {
        inner.attr
        for node in nodes
        if isinstance(node, ast.FunctionDef)
        and "cached_property" in map(ast.unparse, node.decorator_list)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Attribute) and ast.unparse(inner.value) == "self"
    }
    assert not named & read
