# SPDX-License-Identifier: BSD-2-Clause
"""Volumes that belong to nobody, over several clusters that see the same storage."""
