# SPDX-License-Identifier: BSD-2-Clause
"""Which versions of Moorage run in the cluster, and what is left to upgrade."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moorage import __version__
from moorage.cli.command import Call, Command
from moorage.cli.options import DEBUG, refused

_APT = "apt-get install moorage-node; systemctl restart moorage-node"
_FIELDS = ("name", "version", "offline", "master")


def _upgrade(call: Call) -> int:
    found = call.client.info()
    nodes = call.rows("node", _FIELDS)
    left = 0
    for line, done in told(str(found["software_version"]), nodes):
        call.terminal.print(line)
        left += not done
    return 1 if left else 0


def told(master: str, nodes: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, bool]]:
    """Yield what is said of the master and each node, and whether that is done."""
    yield f"The master runs {master}", True
    if master != __version__:
        again = "moorage master stop; moorage master start"
        yield f"This machine has {__version__}; type: {again}", False
    for node in nodes:
        name, version = node["name"], node["version"]
        if node["offline"]:
            yield f"{name} is marked offline: upgrade it before it comes back", True
        elif not version:
            yield f"{name} gives no answer: gnt-node info {name}", False
        elif version != __version__:
            yield f"{name} runs {version}; type there: {_APT}", False
    behind = any(
        node["version"] != __version__ for node in nodes if not node["offline"]
    )
    if not behind and master == __version__:
        yield f"All {len(nodes)} nodes are as they should be", True


COMMANDS = (
    Command(
        "upgrade",
        _upgrade,
        (),
        (
            refused("--to", "packages bring the version that is to run", "VERSION"),
            refused("--resume", "each node is upgraded by itself, and in any order"),
            DEBUG,
        ),
        examples={"gnt-cluster upgrade": "status 0: nothing is left"},
    ),
)
