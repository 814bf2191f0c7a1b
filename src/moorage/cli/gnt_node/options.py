# SPDX-License-Identifier: BSD-2-Clause
"""What several commands on nodes take."""

from moorage.cli.command import Operand, Option
from moorage.cli.option_syntax import truth
from moorage.cli.options import refused

NODE = (Operand("NODE", field="node_name"),)
NODES = (Operand("NODE", 0, None),)
STATES = (
    refused("--hypervisor-state", "nodes say what they have", "NAME:KEY=VALUE,..."),
    refused("--disk-state", "nodes say what they have", "NAME:KEY=VALUE,..."),
)


def claim(flags: tuple[str, ...], text: str, dest: str = "") -> Option:
    """Return an option that takes yes or no; yes when it is given alone."""
    words = ("yes", "no")
    return Option(flags, text, "yes|no", truth, choices=words, bare="yes", dest=dest)


CAPABLE = (
    claim(("--master-capable",), "it may ever become the master"),
    claim(("--vm-capable",), "it runs instances"),
)
SECONDARY_IP = Option(
    ("-s", "--secondary-ip"),
    "by which disks are mirrored, and guests migrate",
    "ADDRESS",
    local=True,
)
