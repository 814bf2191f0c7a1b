# SPDX-License-Identifier: BSD-2-Clause
"""The master's side: how agents are asked, and what is made of their answers."""
