# SPDX-License-Identifier: BSD-2-Clause
"""Where things may go: the planner is asked, and what refuses a place."""
