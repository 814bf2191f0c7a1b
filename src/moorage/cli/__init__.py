# SPDX-License-Identifier: BSD-2-Clause
"""The command line: gnt-* programs that ask the master as clients."""
