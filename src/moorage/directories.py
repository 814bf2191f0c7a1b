# SPDX-License-Identifier: BSD-2-Clause
"""Where an installed Moorage keeps its things, unless it is told otherwise."""

MASTER_DIR = "/var/lib/moorage"
NODE_DIR = "/var/lib/moorage-node"
SOCKET = "/run/moorage/luxi.sock"
"""Where the master speaks LUXI."""
