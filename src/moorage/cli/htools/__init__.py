# SPDX-License-Identifier: BSD-2-Clause
"""The placement programs: hbal, hail, hspace, hcheck, hinfo and their kin."""
