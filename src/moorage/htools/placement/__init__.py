# SPDX-License-Identifier: BSD-2-Clause
"""Where instances go: one, several, all that fit, and those that must leave."""
