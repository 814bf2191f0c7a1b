# SPDX-License-Identifier: BSD-2-Clause
"""The exports that this node began, and has neither sealed nor dropped.

An agent that dies in the middle leaves a directory that is no export. The job that
wanted it takes that back, if it still can: not when the node was marked offline
meanwhile, or the master's state is lost. So the node notes, on its own disk, what it
begins, with a mark that lies in the directory, too: where nodes share the directory of
exports, one of the same name may be another node's.
"""

import secrets
from pathlib import Path

from moorage import durable
from moorage.model.export import check_name

_BYTES = 16
"""Of a mark: nobody else's is the same."""


class Drafts:
    """What is noted of each export that grows, one small file each.

    Parameters
    ----------
    directory
        Where they are kept.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        durable.make(directory)

    def begin(self, name: str) -> str:
        """Note that an export begins; return its mark, the same until it ends."""
        known = self.left().get(name)
        if known:
            return known
        mark = secrets.token_hex(_BYTES)
        durable.write(self._path(name), mark.encode())
        return mark

    def end(self, name: str) -> None:
        """Forget an export: it is whole, or gone."""
        if self._path(name).exists():
            durable.remove(self._path(name))

    def left(self) -> dict[str, str]:
        """Return the marks of all that are noted, by the exports' names."""
        found = sorted(self._directory.glob("[!.]*"))
        return {path.name: path.read_text(errors="replace") for path in found}

    def _path(self, name: str) -> Path:
        return self._directory / check_name(name)
