# SPDX-License-Identifier: BSD-2-Clause
"""Who speaks: which software, in which version of the protocol, and for which master.

Each request tells it, and each answer. Two sides can work together when the ranges of
versions that they speak overlap; what both speak, the older one knows whole.
"""

from typing import Annotated

from msgspec import Meta, Struct

from moorage import __version__
from moorage.errors import WrongState

NEWEST = 4
"""Version of the protocol between master and agents; raised when a verb or its meaning
changes. 1 is from before versions were told, 2 brought copies of the master's state, 3
several calls in one request, 4 a key for each master."""
SEVERAL = 3
"""The version from which on an agent takes several calls in one request."""
OLDEST = 1
"""The oldest version that this software still speaks."""

HIGHEST = (1 << 53) - 1
"""The last term that there is."""
Term = Annotated[int, Meta(ge=0, le=HIGHEST)]
"""Which master it is. It only rises, so a slip far up would shut out all masters."""
Mark = Annotated[str, Meta(pattern=r"\A[0-9a-f]{0,32}\Z")]
"""Of the process that leads, drawn by chance; empty if it does not say."""

_Number = Annotated[int, Meta(ge=1, lt=1 << 31)]
_Word = Annotated[str, Meta(max_length=255)]


class Sender(Struct, frozen=True, kw_only=True):
    """One side of a connection.

    Attributes
    ----------
    newest, oldest
        The versions of the protocol that it speaks.
    software
        Its version of Moorage; empty for one from before it was told.
    node, address
        Of the master: name of its node, and where that is reached.
    cluster
        Name of the master's cluster.
    """

    newest: _Number = 1
    oldest: _Number = 1
    software: Annotated[str, Meta(pattern=r"\A[0-9A-Za-z.+~-]{0,40}\Z")] = ""
    node: _Word = ""
    address: _Word = ""
    cluster: _Word = ""

    @property
    def told(self) -> str:
        """Say which Moorage it is."""
        return f"Moorage {self.software or 'of before 0.2'}"


def ourselves(node: str = "", address: str = "", cluster: str = "") -> Sender:
    """Return this software as one side of a connection."""
    return Sender(
        newest=NEWEST,
        oldest=OLDEST,
        software=__version__,
        node=node,
        address=address,
        cluster=cluster,
    )


def check(master: Sender, agent: Sender, node: str) -> None:
    """Raise `WrongState` if a master and the agent of a node cannot work together."""
    if master.oldest <= agent.newest and agent.oldest <= master.newest:
        return
    behind = f"node {node}" if agent.newest < master.oldest else "the master's node"
    raise WrongState(
        f"the master ({master.told}, protocol {_range(master)}) and node {node} "
        f"({agent.told}, protocol {_range(agent)}) speak no common protocol: upgrade "
        f"Moorage on {behind}",
        hint="gnt-cluster upgrade",
        master=master.newest,
        agent=agent.newest,
    )


def _range(side: Sender) -> str:
    same = side.oldest == side.newest
    return str(side.newest) if same else f"{side.oldest} to {side.newest}"
