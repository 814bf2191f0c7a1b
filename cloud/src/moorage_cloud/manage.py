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
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
