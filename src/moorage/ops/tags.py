# SPDX-License-Identifier: BSD-2-Clause
"""Tags: words that people hang on the cluster and on what is in it."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from moorage.errors import BadInput, NotFound
from moorage.jobs import Lock, Operation, Task, View, once
from moorage.jobs.unread import Moot
from moorage.model import (
    Config,
    Disk,
    Entity,
    Instance,
    Network,
    Node,
    NodeGroup,
    StoragePool,
)
from moorage.model.caller import Role
from moorage.model.pattern import Pattern
from moorage.storage.validation import check_tags

_CLUSTER = "cluster"
_KINDS: dict[str, tuple[type[Entity], str, str]] = {
    "instance": (Instance, "instance", "instances"),
    "node": (Node, "node", "nodes"),
    "nodegroup": (NodeGroup, "group", "nodegroup"),
    "network": (Network, "network", "networks"),
    "pool": (StoragePool, "pool", "pools"),
    "disk": (Disk, "disk", "disks"),
}
"""What has tags besides the cluster: class, level of its lock, word in its path."""


def tagged(config: Config, kind: str, name: str | None) -> Entity:
    """Return the object of a kind and name, or uuid; the cluster needs none.

    Raises
    ------
    BadInput
        If objects of this kind have no tags, or the name is missing.
    NotFound
        If there is no such object.
    """
    if kind == _CLUSTER:
        return config.cluster
    if kind not in _KINDS:
        known = ", ".join(sorted({*_KINDS, _CLUSTER}))
        raise BadInput(f"a '{kind}' has no tags: {known} have")
    if not name:
        raise BadInput(f"say which {kind} is meant")
    return config.get(_KINDS[kind][0], name)


def _label(one: Entity) -> str:
    return str(getattr(one, "name", None) or one.uuid)


class OnTagged(Operation, frozen=True, kw_only=True):
    """An operation on the tags of one object.

    Attributes
    ----------
    kind
        Of the object.
    name
        Its name or uuid; None for the cluster.
    """

    op_id = ""

    kind: str
    name: str | None = None

    def summary(self) -> str:
        """Return the opcode and the object, as Ganeti does."""
        return f"{self.op_id.removeprefix('OP_')}({self.name or self.kind})"

    def object(self, view: View) -> Entity:
        """Return the object."""
        return tagged(view.config, self.kind, self.name)


class TagsGet(OnTagged, frozen=True, kw_only=True):
    """Tell the tags of an object."""

    op_id = "OP_TAGS_GET"
    role = Role.READ

    use_locking: Annotated[bool, Moot("a snapshot is read, whatever is changed")] = (
        False
    )

    def check(self, view: View) -> None:
        """Refuse an object that there is not."""
        self.object(view)

    def result(self, view: View, _results: Sequence[Any]) -> list[str]:
        """Return the tags, sorted."""
        return sorted(self.object(view).tags)


class TagsChange(OnTagged, frozen=True, kw_only=True):
    """Change the tags of an object.

    Attributes
    ----------
    tags
        Those that it is about.
    """

    op_id = ""

    tags: tuple[str, ...]

    def after(self, one: Entity) -> tuple[str, ...]:
        """Return the tags that the object is to have; raise `Refused` if it cannot."""
        raise NotImplementedError

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the object."""
        level = _CLUSTER if self.kind == _CLUSTER else ""
        one = self.object(view)
        yield Lock(level or _KINDS[self.kind][1], one.uuid)

    def check(self, view: View) -> None:
        """Refuse what is no tag, and what the object cannot have or lacks."""
        if not self.tags:
            raise BadInput("no tag was named")
        check_tags(self.tags)
        self.after(self.object(view))

    def tasks(self, view: View) -> Iterator[Task]:
        """Record the tags, unless they are so already."""
        one = self.object(view)
        wanted = self.after(one)
        if wanted != one.tags:
            yield view.change(f"change the tags of {_label(one)}", one, tags=wanted)


class TagsSet(TagsChange, frozen=True, kw_only=True):
    """Give tags to an object; those that it has already stay."""

    op_id = "OP_TAGS_SET"

    def after(self, one: Entity) -> tuple[str, ...]:
        """Return the old tags and the new ones."""
        return check_tags(tuple(dict.fromkeys((*one.tags, *self.tags))))


class TagsDel(TagsChange, frozen=True, kw_only=True):
    """Take tags from an object; all of them must be there."""

    op_id = "OP_TAGS_DEL"

    def after(self, one: Entity) -> tuple[str, ...]:
        """Return the tags that are left."""
        lacking = sorted(set(self.tags) - set(one.tags))
        if lacking:
            told = ", ".join(f"'{tag}'" for tag in lacking)
            raise NotFound(f"Tag(s) {told} not found", tags=lacking)
        return tuple(tag for tag in one.tags if tag not in self.tags)


class TagsSearch(Operation, frozen=True, kw_only=True):
    """Find the objects that have a tag.

    Attributes
    ----------
    pattern
        A regular expression that is found in the tag.
    """

    op_id = "OP_TAGS_SEARCH"
    role = Role.READ

    pattern: str

    def check(self, view: View) -> None:
        """Refuse what is no pattern, or could take for ever."""
        self._found(view)

    def result(self, view: View, _results: Sequence[Any]) -> list[tuple[str, str]]:
        """Return the path and the tag of each hit: ``/disks/UUID``, ``gold``."""
        return self._found(view)

    @once
    def _found(self, view: View) -> list[tuple[str, str]]:
        return _search(view.config, Pattern(self.pattern))


def _search(config: Config, pattern: Pattern) -> list[tuple[str, str]]:
    told = list(_all(config))
    fits = {tag: pattern.fits(tag) for _, one in told for tag in one.tags}
    return [(path, tag) for path, one in told for tag in sorted(one.tags) if fits[tag]]


def _all(config: Config) -> Iterator[tuple[str, Entity]]:
    """Yield every object that may have tags, with its path, in Ganeti's order.

    A disk is called by its uuid: it may have no name, and get another one.
    """
    yield "/cluster", config.cluster
    for cls, _, word in _KINDS.values():
        for one in config.named(cls):
            called = one.uuid if isinstance(one, Disk) else _label(one)
            yield f"/{word}/{called}", one


OPERATIONS: tuple[type[Operation], ...] = (TagsDel, TagsGet, TagsSearch, TagsSet)
