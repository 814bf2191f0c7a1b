# SPDX-License-Identifier: BSD-2-Clause
"""Build the tiny guest, or a disk image that boots it.

``build DIR`` writes ``vmlinuz`` and ``initrd.gz``; ``image FILE`` writes a bootable
disk image from them.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from moorage.errors import MoorageError

from .build import build, write_image


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m moorage.testing.guest_image")
    verbs = parser.add_subparsers(dest="verb", required=True)
    make = verbs.add_parser("build", help="write vmlinuz and initrd.gz")
    make.add_argument("dir", type=Path)
    image = verbs.add_parser("image", help="write a bootable raw disk image")
    image.add_argument("file", type=Path)
    image.add_argument("--guest", type=Path, help="where vmlinuz and initrd.gz are")
    image.add_argument("--note", default="tiny guest", help="what it says of itself")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    asked = _parser().parse_args(argv)
    try:
        if asked.verb == "build":
            build(asked.dir)
        else:
            write_image(asked.file, asked.guest or asked.file.parent, note=asked.note)
    except MoorageError as error:
        sys.stderr.write(f"{error.message}\n{error.hint}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
