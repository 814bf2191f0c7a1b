# SPDX-License-Identifier: BSD-2-Clause
"""What clients speak with: OpenStack's identity, block storage and compute."""
