# SPDX-License-Identifier: BSD-2-Clause
# Where the images are: a directory that all nodes of all clusters mount under this path.
IMAGE_DIR=/srv/moorage/named
