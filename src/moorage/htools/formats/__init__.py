# SPDX-License-Identifier: BSD-2-Clause
"""How clusters are written down: text, iallocator JSON, RAPI, LUXI, simulation."""
