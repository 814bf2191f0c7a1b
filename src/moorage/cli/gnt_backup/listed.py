# SPDX-License-Identifier: BSD-2-Clause
"""gnt-backup list, list-fields."""

from moorage.cli.command import Option
from moorage.cli.listing import Listing

LISTING = Listing("export", ("node", "export"), ("export",))
_LIST, _FIELDS = LISTING.commands("gnt-backup", 'node == "node1"', "disks")
_NODE = Option(("-n", "--node"), "those on this node", "NODE", repeats=True)
COMMANDS = (_LIST._replace(options=(_NODE, *_LIST.options)), _FIELDS)
