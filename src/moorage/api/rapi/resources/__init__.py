# SPDX-License-Identifier: BSD-2-Clause
"""The resources, by what they are about."""
