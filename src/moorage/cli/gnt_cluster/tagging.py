# SPDX-License-Identifier: BSD-2-Clause
"""gnt-cluster list-tags, search-tags, add-tags, remove-tags."""

from moorage.cli import tags

COMMANDS = tags.commands("gnt-cluster")
