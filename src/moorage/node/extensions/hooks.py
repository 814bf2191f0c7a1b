# SPDX-License-Identifier: BSD-2-Clause
"""The hooks of this node: an administrator's scripts, in Ganeti's directories.

``DIRECTORY/instance-start-pre.d/10check`` runs before an instance starts. Names are
letters, digits, dashes and underscores; scripts run in the order of their names.
"""

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from moorage.errors import CommandFailed
from moorage.node.machine import commands
from moorage.node.machine.scripts import Scripts
from moorage.node.machine.trust import distrust
from moorage.protocol import HookRun
from moorage.storage import Command, limits

DIRECTORY = "/etc/ganeti/hooks"
PATH = "/sbin:/bin:/usr/sbin:/usr/bin"
_NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of a node.

    Attributes
    ----------
    directory
        Where the directories of the hooks are; it need not be there.
    scripts
        Where each is noted while it runs.
    """

    directory: Path
    scripts: Scripts | None = None

    def found(self, name: str) -> list[Path]:
        """Return the scripts of a directory, in their order."""
        try:
            entries = sorted((self.directory / name).iterdir())
        except OSError:
            return []
        return [one for one in entries if _NAME.fullmatch(one.name) and _runs(one)]

    async def run(self, name: str, env: Mapping[str, str]) -> list[HookRun]:
        """Run the scripts of a directory; one that fails does not stop the others."""
        return [await self._one(one, env) for one in self.found(name)]

    async def _one(self, script: Path, env: Mapping[str, str]) -> HookRun:
        called = f"{script.parent.name}/{script.name}"
        if problem := distrust(script):
            return HookRun(script=called, problem=f"it is not run: {problem}")
        command = Command(
            (str(script),),
            env={"PATH": PATH, **env},
            cwd=str(script.parent),
            failure=called,
        )
        try:
            await commands.run(command, timeout=limits.HOOK, scripts=self.scripts)
        except CommandFailed as error:
            return HookRun(script=called, problem=_said(called, error.message))
        return HookRun(script=called)


def _runs(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode) and os.access(path, os.X_OK)
    except OSError:
        return False


def _said(called: str, message: str) -> str:
    """Return why a script failed, in one line."""
    how, _, output = message.removeprefix(f"{called} ").partition(", last lines of ")
    lines = output.removeprefix("output:").split("\n")
    told = "; ".join(line.strip() for line in lines if line.strip())
    return f"{how}: {told}" if told else how
