# SPDX-License-Identifier: BSD-2-Clause
"""Ports of a node that anybody can reach, and what strangers get there."""
