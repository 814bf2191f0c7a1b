# SPDX-License-Identifier: BSD-2-Clause
"""Disks and the storage below them: what is wanted, who reaches it, the tasks on it."""
