# SPDX-License-Identifier: BSD-2-Clause
"""The node: its agent, its machine, its hypervisors."""
