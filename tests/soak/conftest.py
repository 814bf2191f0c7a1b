# SPDX-License-Identifier: BSD-2-Clause
"""The driver is a program of several files: it is run, not collected."""

collect_ignore_glob = ["[!t]*.py"]
