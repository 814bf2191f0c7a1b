# SPDX-License-Identifier: BSD-2-Clause
"""The machine below the agent: files, processes, and programs that run."""
