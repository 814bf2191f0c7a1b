# SPDX-License-Identifier: BSD-2-Clause
"""Pictures of plans: one HTML document each, without script or network.

A page is a pure function of a plan: the same plan, the same bytes.
"""
