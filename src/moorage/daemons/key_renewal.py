# SPDX-License-Identifier: BSD-2-Clause
"""The master looks after the nodes' certificates: they are renewed long before the end.

It renews its own when it uses it.
"""

import asyncio
import logging
from contextlib import suppress

from moorage.api.query import Sources
from moorage.errors import MoorageError
from moorage.jobs.turns import together
from moorage.model import Node
from moorage.node.certificates.authority import DUE
from moorage.protocol import GetFacts, silent

_LOG = logging.getLogger(__name__)
_LOOK = 3600.0
"""Seconds between two looks; an agent that is too old to renew fails no oftener."""
_OPERATION = "OP_NODE_RENEW_CRYPTO"


async def watch(at: Sources) -> None:
    """Look after the nodes' certificates, for ever."""
    while True:
        await renew_due(at)
        await asyncio.sleep(_LOOK)


async def renew_due(at: Sources) -> None:
    """Submit a job for each node whose certificate is due, or whose key is not noted.

    A node that gives no answer, or is marked offline, is looked at the next time.
    """
    nodes = at.config_store.config.online()
    found = await together(_is_due(at, node) for node in nodes)
    under_way = {
        op.input.get("node_name")
        for job in at.engine.jobs.values()
        for op in job.ops
        if op.input.get("OP_ID") == _OPERATION and not job.finished
    }
    for node, due in zip(nodes, found, strict=True):
        if due and node.name not in under_way:
            _LOG.info("node %s gets a new certificate", node.name)
            with suppress(MoorageError):  # the queue is drained
                opcode = {"OP_ID": _OPERATION, "node_name": node.name}
                await at.engine.submit([opcode])


async def _is_due(at: Sources, node: Node) -> bool:
    call = GetFacts(brief=True)
    try:
        said = await at.nodes.call(node, call, at.config_store.term, silent)
    except MoorageError as error:
        return error.facts.get("expired") is True
    ends = said.certificate_ends
    return ends is not None and (not node.pins or ends - at.clock() < DUE)
