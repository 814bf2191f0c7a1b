# SPDX-License-Identifier: BSD-2-Clause
# Defaults of this provider; a disk's own parameters win over them.

# Where the images are: a directory that all nodes mount under this path.
IMAGE_DIR=/srv/moorage/qsd

# Where each node keeps the sockets and process numbers of its daemons.
RUN_DIR=/run/moorage-qsd

# The user-ids of the daemons, each of which is a user of its own: as those of guests. A
# lock in /run/moorage-uid-pool says which are taken.
DAEMON_UIDS=2100000000-2100009999

# Go around the page cache ("on"). Needed on a file system that several machines share;
# "off" for file systems without direct I/O (tmpfs).
DIRECT_IO=on
