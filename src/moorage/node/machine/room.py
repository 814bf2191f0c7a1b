# SPDX-License-Identifier: BSD-2-Clause
"""How a program is kept apart from its node: a root directory of its own, no network.

It sees programs and libraries, and what it inherits: no other file, and no socket.
"""

import logging
import os
import subprocess
from functools import cached_property
from pathlib import Path

from moorage import durable

from .users import User

_LOG = logging.getLogger(__name__)
_APART = ("unshare", "--mount", "--net", "--ipc", "--uts", "--")
_LIMITS = ("prlimit", "--core=0", f"--as={8 << 30}", "--nofile=256", "--")
_MADE = """
mount -t tmpfs -o size=64k,mode=755 none "$0"
for at in /usr /lib /lib32 /lib64 /libx32 /bin /sbin; do
    if [ -L "$at" ]; then cp -P "$at" "$0$at"
    elif [ -d "$at" ]; then mkdir "$0$at"; mount --bind -o ro "$at" "$0$at"; fi
done
mkdir "$0/dev" "$0/etc"
for at in /dev/null /etc/ld.so.cache; do
    if [ -e "$at" ]; then : >"$0$at"; mount --bind "$at" "$0$at"; fi
done
exec chroot "$0" "$@"
"""


class Room:
    """Where programs run that must see nothing of their node.

    Parameters
    ----------
    place
        A directory that stays empty: what is made there, only the program sees.
    """

    def __init__(self, place: Path) -> None:
        self._place = place

    @cached_property
    def _apart(self) -> bool:
        """Whether this process can keep a program apart."""
        durable.make(self._place)
        argv = (*_APART, "mount", "-t", "tmpfs", "none", str(self._place))
        if os.geteuid() == 0:
            tried = subprocess.run(argv, check=False, capture_output=True)
            if not tried.returncode:
                return True
        _LOG.warning(
            "images are read by a QEMU that sees what its user may read on this node: "
            "the agent may not keep it apart (it is not root, or may not mount)"
        )
        return False

    def words(self, user: User) -> list[str]:
        """Return what starts a program there, as a user and without any right."""
        made = (*_APART, "sh", "-ec", _MADE, str(self._place))
        return [*_LIMITS, *(made if self._apart else ()), *user.words()]
