# SPDX-License-Identifier: BSD-2-Clause
"""Verbs that a node obeys where a file of its administrator's allows it."""

from .maintenance import Said
from .verb import Verb

LARGEST = 256 * 1024
"""Bytes of a file that is copied."""


class RunCommand(Verb[Said], frozen=True, kw_only=True, tag="command.run"):
    """Run a command of a shell's as root; refused unless the node's root allows it.

    Attributes
    ----------
    command
        What the shell reads.
    """

    repeatable = False
    stays = True

    command: str


class PutFile(Verb[None], frozen=True, kw_only=True, tag="file.put"):
    """Write a file of root's into a place that the node's root has listed.

    Attributes
    ----------
    path
        Absolute.
    content
        All of it.
    mode
        Who may read, write and run it: nine bits.
    """

    stays = True

    path: str
    content: bytes
    mode: int
