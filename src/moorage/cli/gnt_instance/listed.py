# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance list, list-fields."""

from moorage.cli.listing import Listing

LISTING = Listing(
    "instance", ("name", "hypervisor", "os", "pnode", "status", "oper_ram")
)
COMMANDS = LISTING.commands("gnt-instance", 'status == "running"')
