# SPDX-License-Identifier: BSD-2-Clause
"""The placement programs: hbal, hail, hspace, hcheck, hinfo and their kin."""

import gc

# They live for a moment and make no cycles: to look for some costs 4% of it.
gc.set_threshold(200_000)
