# SPDX-License-Identifier: BSD-2-Clause
"""gnt-cluster command and copyfile: where nodes' administrators allow them."""

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.jobs.archive import unpacked
from moorage.node.extensions.orders import COMMANDS, PLACES, Orders

from .harbour import Harbour, harbour


@pytest.fixture
def at(typed: Any, tmp_path: Path) -> Iterator[Harbour]:
    with harbour(typed) as found:
        for name, node in found.cluster.nodes.nodes.items():
            (tmp_path / name).mkdir()
            (tmp_path / name / "place").mkdir()
            node.machine.orders = Orders(tmp_path / name)
        yield found


def records(at: Harbour, kind: str) -> list[bytes]:
    known = at.cluster.store.records.items()
    return [value for (one, _), value in sorted(known) if one == kind]


RULE = "-" * 48


def test_a_command_is_run_where_it_is_allowed(at: Harbour, tmp_path: Path) -> None:
    for name in ("node1", "node3"):
        (tmp_path / name / COMMANDS).write_text("yes\n")
    shown = at.types("gnt-cluster command -n node3 -n node1 echo hello '&&' exit 3")
    assert shown == (
        f"{RULE}\nnode: node3\nhello\n\nreturn code = 3\n"
        f"{RULE}\nnode: node1\nhello\n\nreturn code = 3\n"
    )
    shown = at.types("gnt-cluster command -M -n node1 echo a")
    assert shown == f"{RULE}\nnode1: a\nreturn code = 0\n"
    assert at.types("gnt-cluster command --failure-only -n node1 echo a") == ""
    told = at.refuses_out("gnt-cluster command -g default echo b")
    assert f"{tmp_path}/node2/{COMMANDS} does not say yes" in " ".join(told.split())
    told = at.refuses("gnt-cluster command echo b")
    assert "the command is not known to have run on node2" in told
    assert "is not known" in at.refuses("gnt-cluster command -n node9 true")
    at.types("gnt-node modify --offline=yes node2")
    assert at.types("gnt-cluster command --failure-only true") == ""
    told = at.refuses("gnt-cluster command -n node2 true")
    assert "skipping offline nodes: node2" in told
    assert "no node that is online is meant" in told
    audit = b"".join(records(at, "audit"))
    assert b'"command":"echo b"' in audit
    assert b'"user":' in audit


def test_a_file_is_copied_where_it_is_allowed(at: Harbour, tmp_path: Path) -> None:
    file = tmp_path / "motd"
    file.write_bytes(b"the secret of all nodes")
    file.chmod(0o640)
    told = at.refuses(f"gnt-cluster copyfile {file}")
    assert f"its administrator lets no master write {file}" in told
    for name in ("node1", "node2", "node3"):
        (tmp_path / name / PLACES).write_text(f"{file}\n")
    assert "Waiting for job" in at.types(f"gnt-cluster copyfile {file}")
    assert file.stat().st_mode & 0o777 == 0o640
    content = b64encode(file.read_bytes())
    at.types("gnt-job autoarchive all")
    packed = [unpacked(one) for one in records(at, "archived")]
    copied = [one for one in packed if one.ops[0].input["OP_ID"].endswith("COPY_FILE")]
    assert [one.status for one in copied] == ["error"] * 2 + ["success"] * 2
    stored = [repr(one) for one in packed] + [repr(records(at, "audit"))]
    assert not [one for one in stored if content.decode() in one or "secret of" in one]
    assert "cannot be read" in at.refuses("gnt-cluster copyfile /nowhere/x")
    assert "is no file" in at.refuses("gnt-cluster copyfile /")
    assert "left out" in at.refuses(f"gnt-cluster copyfile -n node1 {file}")
