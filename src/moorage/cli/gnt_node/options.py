# SPDX-License-Identifier: BSD-2-Clause
"""What several commands on nodes take."""

from moorage.cli.command import Operand
from moorage.cli.fields import claim, fill
from moorage.cli.options import refused

NODE = (Operand("NODE", field="node_name"),)
NODES = (Operand("NODE", 0, None),)
STATES = (
    refused("--hypervisor-state", "nodes say what they have", "NAME:KEY=VALUE,..."),
    refused("--disk-state", "nodes say what they have", "NAME:KEY=VALUE,..."),
)
CAPABLE = (claim("--master-capable"), claim("--vm-capable"))
SECONDARY_IP = fill("-s/--secondary-ip", metavar="ADDRESS", field=False)
