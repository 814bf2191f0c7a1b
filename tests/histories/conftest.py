# SPDX-License-Identifier: BSD-2-Clause
"""The checker and the clients lie beside their tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
