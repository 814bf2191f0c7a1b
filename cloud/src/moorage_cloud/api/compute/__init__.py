# SPDX-License-Identifier: BSD-2-Clause
"""Compute v2.1, as far as volumes need it: servers by name, and what is attached."""
