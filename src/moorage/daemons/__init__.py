# SPDX-License-Identifier: BSD-2-Clause
"""Daemons: wiring and nothing else."""
