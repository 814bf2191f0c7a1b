# SPDX-License-Identifier: BSD-2-Clause
"""Commands about users and projects."""
