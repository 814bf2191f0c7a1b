# SPDX-License-Identifier: BSD-2-Clause
"""``sharedfile``: raw images on a file system that every node mounts."""

from moorage.model.templates import FACTS
from moorage.storage.capabilities import Can, Capabilities

from .file import PROGRAMS, File


class SharedFile(File):
    """Image files under one path on all nodes (NFS, CephFS, OCFS2 and the like)."""

    name = "sharedfile"
    capabilities = Capabilities(
        facts=FACTS["sharedfile"],
        can=Can.CREATE | Can.GROW | Can.SNAPSHOT | Can.ROOM | Can.LIST,
        programs=PROGRAMS,
        images=True,
    )
