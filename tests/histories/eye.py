# SPDX-License-Identifier: BSD-2-Clause
"""An agent that writes down in which terms it obeyed: ``eye.py MODULE agent DIR``.

Each line of ``obeyed`` in its directory is the machine's monotonic time, and the term
of an order that the node's fence let pass at that moment.
"""

import runpy
import sys
import time
from pathlib import Path

from moorage.node.records.fence import Fence


def main() -> None:
    """Run the agent, with a fence that writes down what it lets pass."""
    passes = Fence.pass_term

    def noted(self: Fence, term: int) -> None:
        passes(self, term)
        with Path(sys.argv[-1], "obeyed").open("a") as file:
            file.write(f"{time.monotonic()} {term}\n")

    Fence.pass_term = noted  # type: ignore[method-assign]
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":  # tests are collected from all files here
    main()
