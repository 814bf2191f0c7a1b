# SPDX-License-Identifier: BSD-2-Clause
"""Tests of operations find the helpers that stand beside them."""

import sys
from pathlib import Path

collect_ignore_glob = ["[!t]*.py"]
sys.path.insert(0, str(Path(__file__).parent))
