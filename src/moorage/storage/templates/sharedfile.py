# SPDX-License-Identifier: BSD-2-Clause
"""``sharedfile``: raw images on a file system that every node mounts."""

from dataclasses import replace

from moorage.disk_templates import FACTS

from .file import File


class SharedFile(File):
    """Image files under one path on all nodes (NFS, CephFS, OCFS2 and the like)."""

    name = "sharedfile"
    capabilities = replace(File.capabilities, facts=FACTS["sharedfile"])
