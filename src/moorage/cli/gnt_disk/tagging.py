# SPDX-License-Identifier: BSD-2-Clause
"""gnt-disk list-tags, add-tags, remove-tags."""

from moorage.cli import tags

COMMANDS = tags.commands("gnt-disk")
