# SPDX-License-Identifier: BSD-2-Clause
"""Guests: the tasks on them, what is known of them, and what they are made with."""
