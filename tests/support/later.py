# SPDX-License-Identifier: BSD-2-Clause
"""Moorage of a later version, which keeps another format: ``later.py MODULE WORD …``.

The master that it runs reads and writes as this one, and calls what it writes by the
next format's number.
"""

import runpy
import sys

from moorage.store import migrations
from moorage.store.etcd import layout


def main() -> None:
    """Run a module of Moorage as its next version would be."""
    migrations.FORMAT = layout.FORMAT = migrations.FORMAT + 1
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
