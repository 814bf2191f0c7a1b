# SPDX-License-Identifier: BSD-2-Clause
"""What the operator's own programs ask: whether it works, and how it does."""
