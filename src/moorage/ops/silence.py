# SPDX-License-Identifier: BSD-2-Clause
"""What to do about a node that gave no proper answer: not always the same."""

from moorage.errors import MoorageError, may_be_off
from moorage.model import Node


def way_out(node: Node, error: MoorageError) -> str:
    """Return what to type when `error` came instead of a node's answer.

    To mark a node offline is right for one thing alone, a node without power. On one
    that lives and cannot answer for another reason, it is the way to two writers.
    """
    if may_be_off(error):
        off = f"gnt-node modify --offline=yes {node.name}"
        return f"make sure that the node is powered off, then: {off}"
    return error.hint or "gnt-cluster verify"
