# SPDX-License-Identifier: BSD-2-Clause
"""Options of Ganeti's for settings that there are not here, each with the reason."""

from moorage.cli.options import NO_SSH, moot, never, refused

_STATE = "nodes say themselves what they have"
_NO_HELPER = "OS scripts run on the node, and no guest helps them"
_NO_MOND = "there is no monitoring daemon"

SHARED = (
    never("--use-external-mip-script", "nobody could take the address away in time"),
    moot("--drbd-usermode-helper", "DRBD calls no helper here", "PATH"),
    never("--maintain-node-health", "nobody powers a node off but a person"),
    never("--prealloc-wipe-disks", "a new volume is what its storage makes of it"),
    refused("--hypervisor-state", _STATE, "NAME:KEY=VALUE,..."),
    refused("--disk-state", _STATE, "NAME:KEY=VALUE,..."),
    refused("--install-image", _NO_HELPER, "IMAGE"),
    refused("--zeroing-image", _NO_HELPER, "IMAGE"),
    refused("--compression-tools", "exports are packed by QEMU's programs", "TOOLS"),
)
"""Of init and modify."""
INIT = (
    refused("--ssh-key-type", NO_SSH, "TYPE"),
    refused("--ssh-key-bits", NO_SSH, "BITS"),
)
MODIFY = (
    moot("--force", "nothing is asked", short="-f"),
    moot("--max-tracked-jobs", "the end of a job is told, nobody polls", "N"),
    moot("--reserved-lvs", "no volume is touched that no disk is in", "PATTERNS"),
    never("--modify-etc-hosts", "/etc/hosts is never written"),
    refused("--instance-communication-network", _NO_HELPER, "NETWORK"),
    refused("--enabled-data-collectors", _NO_MOND, "NAME=yes|no,..."),
    refused("--data-collector-interval", _NO_MOND, "NAME=SECONDS,..."),
)
