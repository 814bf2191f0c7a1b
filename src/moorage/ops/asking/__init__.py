# SPDX-License-Identifier: BSD-2-Clause
"""What operations ask nodes, and what they make of a node that says nothing."""
