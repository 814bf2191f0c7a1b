# SPDX-License-Identifier: BSD-2-Clause
"""Where an installed Moorage keeps its things, unless it is told otherwise."""

MASTER_DIR = "/var/lib/moorage"
NODE_DIR = "/var/lib/moorage-node"
GANETI = "/var/run/ganeti/kvm-hypervisor"
"""Where Ganeti keeps what it knows of the guests that it started."""
SOCKET = "/run/moorage/luxi.sock"
"""Where the master speaks LUXI."""
DOOR = "/run/moorage-door/luxi.sock"
"""Where it speaks LUXI with the door for other machines."""
DOOR_USER = "moorage-rapi"
"""Whose process that is."""
