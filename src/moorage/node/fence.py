# SPDX-License-Identifier: BSD-2-Clause
"""Fences: what keeps a late step of the past from touching the present.

Two numbers only rise. The *term* counts masters: a step of an earlier master is refused
once a later one has spoken. The *epoch* counts the attaches of a disk: a step that
carries an older epoch is refused. Both are kept on the node, for a step may be late by
more than the life of an agent.
"""

from pathlib import Path

from moorage.errors import Stale
from moorage.model import Disk


class Fence:
    """The highest numbers that a node has seen.

    Parameters
    ----------
    directory
        Where they are kept, one small file a number.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def pass_term(self, term: int) -> None:
        """Let a step of this term pass; raise `Stale` if there was a later one."""
        seen = self._read("term")
        if term < seen:
            raise Stale(
                f"a master of term {seen} has spoken: term {term} is over",
                term=term,
                seen=seen,
            )
        if term > seen:
            self._write("term", term)

    def pass_disk(self, disk: Disk) -> None:
        """Let a step of the disk's epoch pass; raise `Stale` if there was a later."""
        name = f"disk-{disk.uuid}"
        seen = self._read(name)
        if disk.epoch < seen:
            raise Stale(
                f"disk {disk.label} is at epoch {seen}: a step of epoch {disk.epoch} "
                "is too late",
                disk=disk.uuid,
                epoch=disk.epoch,
                seen=seen,
            )
        if disk.epoch > seen:
            self._write(name, disk.epoch)

    def _read(self, name: str) -> int:
        try:
            return int((self._directory / name).read_text())
        except FileNotFoundError:
            return 0

    def _write(self, name: str, value: int) -> None:
        draft = self._directory / f".{name}"
        draft.write_text(f"{value}\n")
        draft.replace(self._directory / name)
