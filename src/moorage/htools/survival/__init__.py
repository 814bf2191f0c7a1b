# SPDX-License-Identifier: BSD-2-Clause
"""What happens when a node, a storage unit or a pool is lost."""
