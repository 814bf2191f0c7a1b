# SPDX-License-Identifier: BSD-2-Clause
"""Verify that somebody looks after the guests: the watcher, every five minutes."""

import time
from collections.abc import Iterator

from moorage.jobs import Ask, View
from moorage.protocol import GetWatcher
from moorage.units import counted

from .observation import Finding, Seen

CODE = "ECLUSTERWATCHER"
"""Of our own: Ganeti's verify does not look."""
_LATE = 15 * 60.0
"""Seconds: a look that waits for jobs, and the one after it, are no longer apart."""


def look_on(view: View) -> Ask[float | None]:
    """Ask the master when the watcher looked last."""
    return Ask(view.config.cluster.master_node, GetWatcher())


def looks(seen: Seen) -> Iterator[Finding]:
    """Find a watcher that does not look, and tell of one that somebody paused."""
    now, until = seen.view.now, seen.config.cluster.watcher_pause
    if until and until > now:
        told = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(until))
        yield Finding(
            "cluster",
            f"the watcher is paused until {told}: what ends is not started again",
            "gnt-cluster watcher continue",
            notice=True,
        )
        return
    last = seen.view.told(look_on(seen.view))
    if last is not None and now - last > _LATE:
        minutes = counted(int(now - last) // 60, "minute")
        yield Finding(
            "cluster",
            f"the watcher has not looked for {minutes}: what ends is not started again",
            "systemctl status moorage-watcher.timer moorage-watcher.service",
        )
