# SPDX-License-Identifier: BSD-2-Clause
"""Plans that make a cluster even: found, made longer and shorter, priced, printed."""
