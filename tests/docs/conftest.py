# SPDX-License-Identifier: BSD-2-Clause
"""Let tests import the programs that make the docs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts" / "docs"))
