# SPDX-License-Identifier: BSD-2-Clause
"""Moorage: virtual machines on ordinary nodes, disks as citizens of their own."""

__version__ = "0.2.0"
