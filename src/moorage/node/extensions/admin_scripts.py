# SPDX-License-Identifier: BSD-2-Clause
"""Scripts that a node's administrator lets the cluster run, by their names alone.

``restricted-commands`` are for ``gnt-node restricted-command``, ``oob`` switch the
power of other nodes. What is in these directories is root's decision on this node.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from moorage.errors import CommandFailed, Failed, NotFound
from moorage.node.machine import commands
from moorage.node.machine.scripts import Scripts
from moorage.node.machine.trust import distrust
from moorage.protocol import Said
from moorage.storage import Command, limits

DIRECTORY = "/etc/ganeti"
KINDS = ("restricted-commands", "oob")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class AdminScripts:
    """The scripts of a node.

    Attributes
    ----------
    directory
        Has a directory of each kind; they need not be there.
    scripts
        Where each is noted while it runs.
    """

    directory: Path
    scripts: Scripts | None = None

    async def run(self, kind: str, name: str, arguments: tuple[str, ...]) -> Said:
        """Run one, and return what it printed.

        Raises
        ------
        NotFound
            If there is none of that name.
        Failed
            If others than root could have written it, or it does not end.
        """
        path = self.directory / kind / name
        if kind not in KINDS or not _NAME.fullmatch(name) or not path.is_file():
            raise NotFound(f"there is no {self.directory / kind}/{name[:80]}")
        if problem := distrust(path):
            raise Failed(f"{path} is not run: {problem}")
        argv = ("/bin/sh", "-c", 'exec "$0" "$@" 2>&1', str(path), *arguments)
        command = Command(argv, failure=f"{kind}/{name}", check=False)
        try:
            found = await commands.run(
                command, timeout=limits.ADMIN_SCRIPT, scripts=self.scripts
            )
        except CommandFailed as error:
            raise Failed(" ".join(error.message.split())) from None
        return Said(output=found.stdout, code=found.code)
