# SPDX-License-Identifier: BSD-2-Clause
"""LUXI's method that tells numbers for metrics: of what is counted already."""

from typing import Any

from msgspec import to_builtins

from moorage.jobs.measures import BOUNDS
from moorage.model import Node
from moorage.model.caller import Role

from . import census
from .luxi_method import Method
from .query import Sources
from .store_health import store_told


class QueryMetrics(Method, frozen=True):
    """Return counts of objects and jobs, and how long things took; not in Ganeti.

    It asks no node, and walks through no objects; where the state is kept is looked
    at once for all who ask.
    """

    role = Role.READ

    async def answer(self, at: Sources) -> dict[str, Any]:
        """Look at what was counted."""
        store = at.config_store
        return {
            "master": {"term": store.term, "audit": store.audit.shown},
            "store": await store_told(at.store, store.config, store.term),
            "objects": _objects(at),
            "copies": list(_copies(at)),
            **_of_jobs(at),
        }


def _objects(at: Sources) -> dict[str, Any]:
    found = at.census.of(at.config_store)
    attached = found[census.ACTIVE] + found[census.INACTIVE]
    states = {
        word.removeprefix("instances "): number
        for word, number in found.items()
        if word.startswith("instances ") and number
    }
    return {
        "instances": states,
        "disks": {"attached": attached, "detached": found[census.DISKS] - attached},
        "attachments": {one: found[one] for one in (census.ACTIVE, census.INACTIVE)},
        "quarantined": found[census.QUARANTINED],
        "behind": found[census.BEHIND],
    }


def _copies(at: Sources) -> Any:  # noqa: ANN401 - rows of JSON
    config = at.config_store.config
    for one in at.copies():
        node = config.objects.get(one.node)
        if isinstance(node, Node):
            current = one.state == "current"
            yield {"node": node.name, "current": current, "behind": one.commits}


def _of_jobs(at: Sources) -> dict[str, Any]:
    queue = at.engine.queue
    measures = queue.measures
    return {
        "jobs": dict(queue.counts()),
        "ages": queue.ages(),
        "bounds": list(BOUNDS),
        "locks": {
            "waiting": len(measures.waiting),
            "longest": measures.longest_wait(),
            "waits": to_builtins(measures.locks.spread),
        },
        "verbs": {
            name: to_builtins(timer.spread)
            for name, timer in sorted(measures.verbs.items())
        },
    }


class QueryStore(Method, frozen=True):
    """Return where the state is kept, who leads, and what needs somebody there."""

    role = Role.READ

    async def answer(self, at: Sources) -> dict[str, Any]:
        """Look at what is known, or find it out."""
        found = at.config_store
        return await store_told(at.store, found.config, found.term)
