# SPDX-License-Identifier: BSD-2-Clause
"""Nodes have Ganeti's ``ssconf`` files, as the configuration is; or have none.

A node is written to when what stands in its files has changed, and at most every two
seconds, however fast the configuration changes. One that gives no answer is tried again
with the next change, and every minute.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress

from moorage.api.query import Sources
from moorage.config_data import ssconf
from moorage.errors import MoorageError, NotSupported
from moorage.jobs.turns import together
from moorage.model import Change, Node
from moorage.protocol import RestoreSsconf, WriteSsconf, silent

_LOG = logging.getLogger(__name__)
_CALM = 2.0
"""Seconds in which changes are gathered."""
_AGAIN = 60.0
"""Seconds until a node that gave no answer is tried again."""

Files = Mapping[str, str]


class _Nodes:
    """What nodes have, as far as this master knows.

    Attributes
    ----------
    have
        The files of each node by its uuid; none of ours if empty.
    complaints
        What was said of a node in the log, by its uuid.
    """

    def __init__(self, at: Sources) -> None:
        self.have: dict[str, Files] = {}
        self.complaints: dict[str, str] = {}
        self._at = at

    async def bring(self) -> None:
        """Let all nodes have what the configuration says."""
        config = self._at.config_store.config
        wanted: Files = {}
        if config.cluster.ssconf:  # ten thousand names: nobody is to wait for that
            wanted = await asyncio.to_thread(ssconf, config)
        behind = [one for one in config.online() if self.have.get(one.uuid) != wanted]
        await together(self._tell(node, wanted) for node in behind)

    async def _tell(self, node: Node, wanted: Files) -> None:
        verb = WriteSsconf(files=dict(wanted)) if wanted else RestoreSsconf()
        try:
            term = self._at.config_store.term
            await self._at.nodes.call(node, verb, term, silent)
        except MoorageError as error:
            self.have.pop(node.uuid, None)
            if not wanted and isinstance(error, NotSupported):
                self.have[node.uuid] = wanted  # it never had any
            elif self.complaints.get(node.uuid) != error.message:
                self.complaints[node.uuid] = error.message
                _LOG.warning("ssconf files of node %s: %s", node.name, error)
        else:
            self.have[node.uuid] = wanted
            self.complaints.pop(node.uuid, None)


async def keep(at: Sources) -> None:
    """Let nodes have these files, for ever, if the cluster is told so."""
    changed = asyncio.Event()

    def hear(_change: Change) -> None:
        changed.set()

    at.config_store.watchers.append(hear)
    nodes = _Nodes(at)
    try:
        while True:
            changed.clear()
            await nodes.bring()
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), _AGAIN)
            await asyncio.sleep(_CALM)
    finally:
        at.config_store.watchers.remove(hear)
