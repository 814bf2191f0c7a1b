# SPDX-License-Identifier: BSD-2-Clause
"""The master: whether it is there, and another one in its place."""

from importlib import import_module

from moorage.cli.command import Call, Command, Option
from moorage.cli.daemons_side import daemons
from moorage.cli.options import DEBUG, moot


def _failover(call: Call) -> None:
    paths = daemons("paths")

    def agreed(warnings: list[str]) -> None:
        for line in warnings:
            call.terminal.talk(f"- {line}")
        if not call.option("yes_do_it"):
            call.ask("Make this node the master?")

    told = daemons("failover").failover(
        paths.master_places(),
        paths.node_places(),
        voting=not call.option("no_voting"),
        lossy=bool(call.option("accept_loss")),
        agreed=agreed,
    )
    for line in told:
        call.terminal.print(line)


def heard() -> str:
    """Return the master's node as the node of this machine heard it; empty if not."""
    node = daemons("paths").node_places()
    known = import_module("moorage.node.records.leader").read(node.run)
    return str(known.sender.node) if known else ""


def _ping(call: Call) -> None:
    name = call.client.info()["master"]
    call.terminal.print(f"The master on {name} answers")


COMMANDS = (
    Command(
        "master-failover",
        _failover,
        (),
        (
            Option(
                ("--no-voting",),
                "though no more than half of the nodes give an answer; not with etcd, "
                "where none votes",
            ),
            Option(
                ("--accept-loss",),
                "go on without what a later master did, or another candidate says "
                "that it has, and nobody gives",
            ),
            Option(("--yes-do-it",), "do not ask"),
            moot("--ignore-offline-nodes", "nodes marked offline have no vote"),
            DEBUG,
        ),
        examples={
            "gnt-cluster master-failover": "typed on the candidate",
            "gnt-cluster master-failover --no-voting": (
                "of two nodes, the other one is off"
            ),
        },
        here="it makes the machine on which it is typed the master",
    ),
    Command("master-ping", _ping, (), (DEBUG,)),
)
