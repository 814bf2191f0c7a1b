# SPDX-License-Identifier: BSD-2-Clause
"""gnt-network: address pools, and the node groups that they are connected to."""

from functools import partial

from moorage.cli.declaration import Program, Verb
from moorage.cli.main import run
from moorage.cli.verbs import listing, tagging

PROGRAM = Program(
    "gnt-network",
    "networks, whose addresses network cards get",
    __name__,
    (
        Verb("add", "commands", "Make a network"),
        *listing("commands", "network"),
        Verb("info", "commands", "Show all about networks", ("show",)),
        Verb("modify", "commands", "Change a network"),
        Verb("connect", "commands", "Connect a network to node groups, or to all"),
        Verb("disconnect", "commands", "Disconnect a network from node groups"),
        Verb("remove", "commands", "Remove a network that nothing is connected to"),
        Verb("rename", "commands", "Give a network another name"),
        *tagging("network"),
    ),
)

main = partial(run, PROGRAM)
