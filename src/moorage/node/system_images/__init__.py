# SPDX-License-Identifier: BSD-2-Clause
"""The OS definition ``image``: cloud images, and what cloud-init finds beside them.

Its scripts run this package as a program. An image is what others made: its container
is opened by a QEMU without rights, its partition table is read by nothing but
:mod:`.partitions`, and its file systems by nobody on the node.
"""
