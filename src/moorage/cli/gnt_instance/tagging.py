# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance list-tags, add-tags, remove-tags."""

from moorage.cli import tags

COMMANDS = tags.commands("gnt-instance")
