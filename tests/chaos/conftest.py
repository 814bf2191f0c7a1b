# SPDX-License-Identifier: BSD-2-Clause
"""The driver is a program of several files: it is run, not collected."""

import sys
from pathlib import Path

collect_ignore_glob = ["[!t]*.py", "truth.py"]
sys.path.append(str(Path(__file__).parent))
