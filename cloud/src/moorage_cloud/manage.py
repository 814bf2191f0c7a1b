# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage``: the commands of the cloud's administrator."""

import os
import pwd
import sys
from pathlib import Path

from django.core.management import ManagementUtility, get_commands

from moorage_cloud.conf import CONF
from moorage_cloud.management import elsewhere

OF_DJANGO = ("migrate", "showmigrations")
"""What of Django's own commands an administrator needs; the others are there, too."""


class _Commands(ManagementUtility):
    """Django's way to a command; its list has what administrators of a cloud type."""

    def main_help_text(self, commands_only: bool = False) -> str:
        """Return the list of commands."""
        apps = get_commands().items()
        ours = sorted(name for name, app in apps if app == "moorage_cloud")
        names = [*OF_DJANGO, *ours]
        if commands_only:
            return "\n".join(names)
        head = f"Type '{self.prog_name} help COMMAND' for help on one of these:\n"
        return "\n".join([head, *(f"    {name}" for name in names)])


def main() -> None:
    """Run the command that was typed."""
    word = next(iter(sys.argv[1:]), "")
    why = elsewhere.told(word)
    if why:
        raise SystemExit(f"there is no command '{word}' here: {why}")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "moorage_cloud.settings")
    _become_owner(Path(CONF.key_file).parent)
    try:
        _Commands(sys.argv).execute()
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
