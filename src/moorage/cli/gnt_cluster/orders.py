# SPDX-License-Identifier: BSD-2-Clause
"""Commands and files for nodes whose administrators allow them."""

import os
import stat
from base64 import b64encode
from pathlib import Path
from typing import Any

from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.follow import follow_many, perform
from moorage.cli.options import JOB, moot
from moorage.errors import BadInput

_RULE = "-" * 48
_NODES = (
    Option(("-n", "--node"), "on this node alone", "NODE", repeats=True),
    Option(("-g", "--node-group"), "on the nodes of a group", "GROUP"),
)


def _chosen(call: Call) -> list[dict[str, Any]]:
    """Return the nodes that are meant, which are online."""
    wanted: list[Any] = [
        "|",
        *(["==", "name", one] for one in call.option("node") or ()),
    ]
    found = call.rows(
        "node",
        ["name", "offline", "master", "group"],
        wanted if len(wanted) > 1 else None,
    )
    group = call.option("node_group")
    meant = [node for node in found if group in (None, node["group"])]
    chosen = [node for node in meant if not node["offline"]]
    if left := [node["name"] for node in meant if node["offline"]]:
        call.terminal.talk(f"Note: skipping offline nodes: {', '.join(left)}")
    if not chosen:
        raise BadInput("no node that is online is meant", hint="gnt-node list")
    return chosen


def _copyfile(call: Call) -> int:
    from moorage.protocol.orders import LARGEST  # noqa: PLC0415 - slow to load

    path = Path(os.path.abspath(call.words[0]))  # noqa: PTH100 - links stay as they are
    try:
        known = path.stat()
        if not stat.S_ISREG(known.st_mode) or known.st_size > LARGEST:
            raise BadInput(f"{path} is no file of at most {LARGEST // 1024} KiB")
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from None
    names = [node["name"] for node in _chosen(call) if not node["master"]]
    if not names:
        raise BadInput("only the master's node is meant, which is left out")
    opcode = {
        "OP_ID": "OP_CLUSTER_COPY_FILE",
        "path": str(path),
        "file_content": b64encode(content).decode(),
        "file_mode": known.st_mode & 0o777,
    }
    jobs = [[opcode | {"node_name": name}] for name in names]
    answers = call.client.submit_many(jobs)
    return follow_many(call, dict(zip(names, answers, strict=True)))


def _command(call: Call) -> int:
    nodes = sorted(_chosen(call), key=lambda node: bool(node["master"]))
    names = [node["name"] for node in nodes]
    said = perform(call, nodes=names, command=" ".join(call.words))
    for name, one in zip(names, said, strict=True):
        if one is None or (call.option("failure_only") and not one["code"]):
            continue
        call.terminal.print(_RULE)
        if call.option("show_machine_names"):
            for line in one["output"].splitlines():
                call.terminal.print(f"{name}: {line}")
        else:
            call.terminal.print(f"node: {name}")
            call.terminal.print(one["output"])
        call.terminal.print(f"return code = {one['code']}")
    left = [name for name, one in zip(names, said, strict=True) if one is None]
    if left:
        call.terminal.talk(f"the command is not known to have run on {', '.join(left)}")
    return int(bool(left))


COMMANDS = (
    Command(
        "copyfile",
        _copyfile,
        (Operand("FILE"),),
        (
            *_NODES,
            moot("--use-replication-network", "nodes are reached as they always are"),
            *JOB,
        ),
        examples={
            "gnt-cluster copyfile /etc/motd": "to all nodes, where they allow it"
        },
        operation="OP_CLUSTER_COPY_FILE",
    ),
    Command(
        "command",
        _command,
        (Operand("COMMAND", 1, None),),
        (
            *_NODES,
            Option(("-M", "--show-machine-names"), "before each line"),
            Option(("--failure-only",), "tell nothing of nodes where it returned 0"),
            *JOB,
        ),
        examples={"gnt-cluster command uptime": "on all nodes that allow it"},
        operation="OP_CLUSTER_COMMAND",
    ),
)
