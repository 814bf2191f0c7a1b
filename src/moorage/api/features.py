# SPDX-License-Identifier: BSD-2-Clause
"""What clients may rely on, by name: ``GET /2/features`` tells it."""

FEATURES = (
    *("instance-create-reqv1", "instance-reinstall-reqv1"),
    *("node-migrate-reqv1", "node-evac-res1"),
    *("moorage-capacity", "moorage-disks", "moorage-errors", "moorage-events"),
    *("moorage-keys", "moorage-opcodes", "moorage-storage", "moorage-tokens"),
)
"""Ganeti's own first."""
