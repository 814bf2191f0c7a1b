# SPDX-License-Identifier: BSD-2-Clause
"""Pictures: what the planner and a disk's story say, drawn as SVG and told as tables.

A picture is a pure function of its data: the same data, the same bytes. The command
line writes one as a document that stands alone, pages in the browser show them.
"""
