# SPDX-License-Identifier: BSD-2-Clause
"""Which hooks an operation has: directories, nodes and variables, as Ganeti has them.

An operation without hooks of its own stands in the table all the same, with the reason.
"""

from .table import OWN, WITHOUT, of

__all__ = ["OWN", "WITHOUT", "of"]
