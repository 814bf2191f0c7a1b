# SPDX-License-Identifier: BSD-2-Clause
"""What a node must offer an instance: one chain of named checks for each role."""
