# SPDX-License-Identifier: BSD-2-Clause
"""Simulated nodes and whole clusters, shipped for tests and for trying things."""
