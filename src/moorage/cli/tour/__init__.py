# SPDX-License-Identifier: BSD-2-Clause
"""The tour: what Moorage exists for, step by step, each step checking its own claim."""

from .guide import run

__all__ = ["run"]
