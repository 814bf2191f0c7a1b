# SPDX-License-Identifier: BSD-2-Clause
"""Commands, by the names that Django finds them with."""
