# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-cluster rename`` and ``redist-conf``."""

from collections.abc import Iterator

from moorage.errors import BadInput
from moorage.jobs import Lock, Operation, Task, View
from moorage.ops.new_names import is_machine_name


class ClusterRename(Operation, frozen=True, kw_only=True):
    """Give the cluster another name.

    Nothing is reached by it. Certificates that were made keep the old one in them.

    Attributes
    ----------
    name
        The new one, as a host may have it.
    """

    op_id = "OP_CLUSTER_RENAME"

    name: str

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the cluster's settings."""
        yield Lock("cluster", view.config.cluster.uuid)

    def check(self, view: View) -> None:
        """Refuse what is no name, and the name that it has."""
        if not is_machine_name(self.name):
            raise BadInput(f"'{self.name[:80]}' is not the name of a cluster")
        if self.name == view.config.cluster.cluster_name:
            raise BadInput(f"the cluster is called {self.name} already")

    def tasks(self, view: View) -> Iterator[Task]:
        """Record it."""
        cluster = view.config.cluster
        what = f"rename the cluster to {self.name}"
        yield view.change(what, cluster, cluster_name=self.name)


class ClusterRedistConf(Operation, frozen=True, kw_only=True):
    """Do nothing: master candidates get each change when it is made."""

    op_id = "OP_CLUSTER_REDIST_CONF"
