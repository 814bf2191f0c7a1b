# SPDX-License-Identifier: BSD-2-Clause
"""Disks that are filled from others: a conversion to other storage, and a copy."""
