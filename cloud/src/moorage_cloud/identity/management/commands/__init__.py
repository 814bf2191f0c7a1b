# SPDX-License-Identifier: BSD-2-Clause
"""The commands, by their names."""
