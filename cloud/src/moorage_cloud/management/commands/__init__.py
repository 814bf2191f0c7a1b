# SPDX-License-Identifier: BSD-2-Clause
"""One file a command."""
