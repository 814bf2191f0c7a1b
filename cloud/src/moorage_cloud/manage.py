# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage``: the commands of the cloud's administrator."""

import os
import pwd
import sys
from pathlib import Path

from django.core.management import execute_from_command_line

from moorage_cloud.conf import CONF
from moorage_cloud.management import elsewhere


def main() -> None:
    """Run the command that was typed."""
    word = next(iter(sys.argv[1:]), "")
    why = elsewhere.told(word)
    if why:
        raise SystemExit(f"there is no command '{word}' here: {why}")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "moorage_cloud.settings")
    _become_owner(Path(CONF.key_file).parent)
    try:
        execute_from_command_line(sys.argv)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read it has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


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
