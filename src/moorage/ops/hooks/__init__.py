# SPDX-License-Identifier: BSD-2-Clause
"""Which hooks an operation has: their directories, nodes and variables, as Ganeti's."""

from .table import OWN, of

__all__ = ["OWN", "of"]
