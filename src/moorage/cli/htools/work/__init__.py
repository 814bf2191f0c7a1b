# SPDX-License-Identifier: BSD-2-Clause
"""What each program of the planner does with its options: ``run`` of its module."""
