# SPDX-License-Identifier: BSD-2-Clause
"""What administrators bring to a node: OS definitions, providers, hooks, scripts."""
