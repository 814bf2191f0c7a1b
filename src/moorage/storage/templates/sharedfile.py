# SPDX-License-Identifier: BSD-2-Clause
"""``sharedfile``: raw images on a file system that every node mounts."""

from moorage.storage.base import Birth, Can, Capabilities, Mirror, Reach

from .file import File


class SharedFile(File):
    """Image files under one path on all nodes (NFS, CephFS, OCFS2 and the like)."""

    name = "sharedfile"
    capabilities = Capabilities(
        mirror=Mirror.EXTERNAL,
        reach=Reach.GROUP,
        can=Can.CREATE | Can.GROW | Can.SNAPSHOT,
        images=True,
    )

    @classmethod
    def _root_at_birth(cls, born: Birth) -> str:
        return born.shared_file_dir

    def _root(self) -> str:
        return self.site.shared_file_dir
