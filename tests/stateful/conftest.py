# SPDX-License-Identifier: BSD-2-Clause
"""The machine is made of several files beside its test, which finds them."""

collect_ignore_glob = ["[!t]*.py"]
