# SPDX-License-Identifier: BSD-2-Clause
"""The command line: gnt-* programs that speak LUXI to the master."""
