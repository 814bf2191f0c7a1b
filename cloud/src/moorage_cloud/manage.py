# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage``: the commands of the cloud's administrator."""

import os
import sys

from django.core.management import execute_from_command_line

from moorage_cloud.management import elsewhere


def main() -> None:
    """Run the command that was typed."""
    word = next(iter(sys.argv[1:]), "")
    why = elsewhere.told(word)
    if why:
        raise SystemExit(f"there is no command '{word}' here: {why}")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "moorage_cloud.settings")
    try:
        execute_from_command_line(sys.argv)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read it has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None


if __name__ == "__main__":
    main()
