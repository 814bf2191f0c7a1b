# SPDX-License-Identifier: BSD-2-Clause
"""Keys and certificates: the authority, a node and its keys, one key for two."""
