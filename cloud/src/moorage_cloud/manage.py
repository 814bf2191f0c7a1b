# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage``: the commands of the cloud's administrator."""

import os
import pwd
import sys
from pathlib import Path

from django.core.management import execute_from_command_line

from .conf import CONF


def main() -> None:
    """Run the command that was typed."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "moorage_cloud.settings")
    _become_owner(Path(CONF.key_file).parent)
    execute_from_command_line(sys.argv)


def _become_owner(directory: Path) -> None:
    """Go on as the user of the service, if root typed the command.

    What root would write beside the database, the service could not change; and who
    writes there could lead root astray.
    """
    owner = directory.stat().st_uid if directory.is_dir() else 0
    if os.geteuid() or not owner:
        return
    user = pwd.getpwuid(owner)
    os.initgroups(user.pw_name, user.pw_gid)
    os.setgid(user.pw_gid)
    os.setuid(owner)


if __name__ == "__main__":
    main()
