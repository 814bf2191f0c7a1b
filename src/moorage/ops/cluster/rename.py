# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-cluster rename`` and ``redist-conf``."""

import re
from collections.abc import Iterator

from moorage.errors import BadInput
from moorage.jobs import Lock, Operation, Task, View, commit
from moorage.model import Change, successor

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


class ClusterRename(Operation, frozen=True, kw_only=True):
    """Give the cluster another name.

    Nothing is reached by it. Certificates that were made keep the old one in them.
    """

    op_id = "OP_CLUSTER_RENAME"

    name: str

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the cluster's settings."""
        yield Lock("cluster", view.config.cluster.uuid)

    def check(self, view: View) -> None:
        """Refuse what is no name, and the name that it has."""
        if not _NAME.fullmatch(self.name):
            raise BadInput(f"'{self.name[:80]}' is not the name of a cluster")
        if self.name == view.config.cluster.cluster_name:
            raise BadInput(f"the cluster is called {self.name} already")

    def tasks(self, view: View) -> Iterator[Task]:
        """Record it."""
        cluster = view.config.cluster
        change = Change((successor(cluster, view.now, cluster_name=self.name),))
        what = f"rename the cluster to {self.name}"
        yield commit(what, change, view.config.before(change))


class ClusterRedistConf(Operation, frozen=True, kw_only=True):
    """Do nothing: master candidates get each change when it is made."""

    op_id = "OP_CLUSTER_REDIST_CONF"

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold nothing."""
        del view
        return iter(())

    def check(self, view: View) -> None:
        """Refuse nothing."""
        del view
