# SPDX-License-Identifier: BSD-2-Clause
"""LUXI's methods that only look: at objects, settings, tags and stories."""

from contextlib import suppress
from typing import Any, ClassVar

from msgspec import to_builtins

from moorage.errors import MoorageError
from moorage.model import Disk, NodeFacts
from moorage.ops.tags import tagged
from moorage.protocol import GetAuthority, silent

from .cluster_info import cluster_info, config_value
from .luxi_method import Fields, Method
from .query import Sources, fields_of, old_style, query
from .query.live import ask, ask_exports


class Query(Method, frozen=True):
    """Answer a query."""

    what: str
    fields: Fields
    qfilter: list[Any] | None = None

    async def answer(self, at: Sources) -> Any:  # noqa: ANN401
        """Look, and ask nodes where a field needs it."""
        return await query(self.what, self.fields, self.qfilter, at)


class QueryFields(Method, frozen=True):
    """Return which fields a resource has."""

    what: str
    fields: Fields | None = None

    async def answer(self, _at: Sources) -> Any:  # noqa: ANN401
        """Look in the table."""
        return fields_of(self.what, self.fields)


class _OldQuery(Method, frozen=True):
    """A query of Ganeti's first kind."""

    resource: ClassVar[str]

    names: list[str] | None
    fields: Fields
    use_locking: bool = False

    async def answer(self, at: Sources) -> list[list[Any]]:
        """Return bare values."""
        return await old_style(self.resource, self.names, self.fields, at)


class QueryInstances(_OldQuery, frozen=True):
    """Return values of instances."""

    resource = "instance"


class QueryNodes(_OldQuery, frozen=True):
    """Return values of nodes."""

    resource = "node"


class QueryGroups(_OldQuery, frozen=True):
    """Return values of node groups."""

    resource = "group"


class QueryNetworks(_OldQuery, frozen=True):
    """Return values of networks."""

    resource = "network"


class QueryExports(Method, frozen=True):
    """Return the names of the exports of each node; False for one that is silent."""

    nodes: list[str] | None = None
    locking: bool = False

    async def answer(self, at: Sources) -> dict[str, list[str] | bool]:
        """Ask every node."""
        config, told = at.config_store.config, await ask_exports(at)
        wanted = {config.node(name).uuid for name in self.nodes or ()} or set(told)
        return {
            config.node(uuid).name: False
            if isinstance(said, MoorageError)
            else [one.name for one in said if not one.problem]
            for uuid, said in told.items()
            if uuid in wanted
        }


class QueryClusterInfo(Method, frozen=True):
    """Return the cluster's settings."""

    async def answer(self, at: Sources) -> dict[str, Any]:
        """Look in the configuration, and ask the master's node where it looks."""
        config = at.config_store.config
        master = config.cluster.master_node
        said = (await ask(at, config, [master])).get(master)
        found = cluster_info(config, said if isinstance(said, NodeFacts) else None)
        with suppress(MoorageError):
            node, term = config.node(master), at.config_store.term
            told = await at.nodes.call(node, GetAuthority(), term, silent)
            found["authority"] = to_builtins(told)
        return found


class QueryConfigValues(Method, frozen=True):
    """Return some values of the configuration."""

    fields: Fields

    async def answer(self, at: Sources) -> list[Any]:
        """Look each one up."""
        draining = at.engine.queue.draining
        return [
            config_value(at.config_store.config, one, draining) for one in self.fields
        ]


class QueryTags(Method, frozen=True):
    """Return the tags of an object."""

    kind: str
    name: str = ""

    async def answer(self, at: Sources) -> list[str]:
        """Look in the configuration."""
        return sorted(tagged(at.config_store.config, self.kind, self.name).tags)


class QueryDiskStory(Method, frozen=True):
    """Return what happened to a disk, which may be gone; not in Ganeti."""

    disk: str

    async def answer(self, at: Sources) -> dict[str, Any]:
        """Return uuid, name, whether it is there, and its events, the oldest first."""
        config, stories = at.config_store.config, at.config_store.stories
        uuid = stories.find(config, self.disk)
        known = config.objects.get(uuid)
        return {
            "uuid": uuid,
            "name": known.name if isinstance(known, Disk) else stories.name(uuid),
            "exists": known is not None,
            "left_out": stories.left_out(uuid),
            "events": to_builtins(await at.config_store.story(uuid)),
        }


QUERIES: tuple[type[Method], ...] = (
    Query,
    QueryFields,
    QueryInstances,
    QueryNodes,
    QueryGroups,
    QueryNetworks,
    QueryExports,
    QueryClusterInfo,
    QueryConfigValues,
    QueryTags,
    QueryDiskStory,
)
"""Every method that only looks."""
