# SPDX-License-Identifier: BSD-2-Clause
"""Verify that the place where the state is kept needs nobody."""

from collections.abc import Iterator

from moorage.jobs import Ask, View
from moorage.model.store_trouble import StoreTrouble
from moorage.protocol import GetStore

from .observation import Finding, Seen

CODE = "ECLUSTERSTORE"
"""Of our own: Ganeti's state is files."""


def store_on(view: View) -> Ask[list[StoreTrouble]]:
    """Ask the master what somebody should do about its store."""
    return Ask(view.config.cluster.master_node, GetStore())


def store(seen: Seen) -> Iterator[Finding]:
    """Find an etcd that is full, or nearly, that lacks members, or has slow disks."""
    for one in seen.view.told(store_on(seen.view)) or []:
        yield Finding("cluster", one.said, one.command, warning=not one.urgent)
