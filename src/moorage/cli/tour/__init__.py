# SPDX-License-Identifier: BSD-2-Clause
"""The tour: what Moorage exists for, step by step, each step checking its own claim."""

from .guide import run, run_cloud

__all__ = ["run", "run_cloud"]
