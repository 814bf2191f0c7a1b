# SPDX-License-Identifier: BSD-2-Clause
"""What is installed on this machine: programs, and modules of its kernel."""

import os
import shutil
from pathlib import Path

from .commands import PATH

_MODULES = Path("/lib/modules")
_LOADED = Path("/sys/module")


def has_program(name: str, path: str = PATH) -> bool:
    """Whether commands of templates find a program."""
    return shutil.which(name, path=path) is not None


def has_module(name: str, loaded: Path = _LOADED, modules: Path = _MODULES) -> bool:
    """Whether the kernel has a module: loaded, built in, or there to be loaded.

    Parameters
    ----------
    loaded, modules
        Where the kernel tells what it has, and where its modules are, by release.
    """
    wanted = name.replace("-", "_")
    if (loaded / wanted).exists():
        return True
    release = modules / os.uname().release
    lists = (release / "modules.builtin", release / "modules.dep")
    return any(wanted in _named_in(one) for one in lists)


def _named_in(listed: Path) -> set[str]:
    """Return the modules that a list of the kernel's names: ``a/b/dm-mod.ko.xz: …``."""
    try:
        lines = listed.read_text().splitlines()
    except OSError:
        return set()
    paths = (line.partition(":")[0] for line in lines)
    return {Path(path).name.partition(".")[0].replace("-", "_") for path in paths}
