# SPDX-License-Identifier: BSD-2-Clause
"""What programs speak: LUXI, queries."""
