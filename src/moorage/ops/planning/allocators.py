# SPDX-License-Identifier: BSD-2-Clause
"""Who chooses where something goes: our planner, or an allocator that was named.

``hail`` is our planner, always. An allocator is a program of that name on the master's
node, which gets Ganeti's message and answers with nodes (:mod:`.message`); its answer
narrows what may be chosen (:mod:`.advice`).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from moorage.errors import BadInput, NotFound
from moorage.jobs import Ask, Planner, Question, View, rights
from moorage.model import Config
from moorage.protocol import GetAllocators, RunAllocator

from . import message, placement

OURS = "hail"
"""Our planner."""
DEFAULT = "."
"""The cluster's default, as Ganeti's commands call it."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,79}", re.ASCII)
_LONGEST = 1000


def check(name: str | None) -> None:
    """Raise `BadInput` for what cannot be an allocator's name."""
    if name and name != DEFAULT and not _NAME.fullmatch(name):
        raise BadInput(
            f"'{name[:80]}' is no name of an allocator: that is at most 80 letters, "
            "digits, dashes and underscores"
        )


def check_words(params: Mapping[str, str]) -> None:
    """Raise `BadInput` for words that no program could be given."""
    for name, value in params.items():
        fits = value.isprintable() and len(value) <= _LONGEST
        if not (fits and _WORD.fullmatch(name)):
            raise BadInput(
                f"'{name[:80]}' with its value is no option of an allocator: a name is "
                "letters, digits and dashes, a value a text of at most "
                f"{_LONGEST:,} characters"
            )


def words(params: Mapping[str, str]) -> tuple[str, ...]:
    """Return options as a program gets them; one that is empty stands alone.

    >>> words({"node-cost": "2", "quick": ""})
    ('--node-cost=2', '--quick')
    """
    return tuple(f"--{n}={value}" if value else f"--{n}" for n, value in params.items())


def chosen(config: Config, name: str | None) -> str:
    """Return the allocator that is meant; empty for our planner."""
    meant = config.cluster.default_iallocator if name in (None, "", DEFAULT) else name
    return "" if meant in (None, "", OURS, DEFAULT) else str(meant)


def ask_there(config: Config, name: str | None) -> Iterator[Question]:
    """Ask the master's node which allocators it has, if one is named."""
    if name and chosen(config, name):
        yield _ask_there(config)


def _ask_there(config: Config) -> Ask[tuple[str, ...]]:
    return Ask(config.cluster.master_node, GetAllocators())


def check_there(view: View, name: str | None) -> None:
    """Raise unless the master's node has an allocator of that name.

    Raises
    ------
    BadInput
        If it cannot be one's name.
    NotFound
        If there is none.
    """
    check(name)
    if name and chosen(view.config, name):
        question = _ask_there(view.config)
        known = view.answer(question) or ()
        if name not in known:
            told = f"; there is {', '.join(known)}" if known else ""
            home = view.config.node(question.node).name
            raise NotFound(
                f"node {home}, the master's, has no allocator '{name}'{told}",
                hint=f"{OURS} is the planner's own",
            )


def check_default(view: View, name: str | None) -> None:
    """Raise unless a name can be the cluster's default, as :func:`check_there` does."""
    if name == DEFAULT:
        raise BadInput(
            f"'{DEFAULT}' is the cluster's default already",
            hint=f"{OURS} is the planner",
        )
    check_there(view, name)


Allocator = Annotated[str | None, rights.ALLOCATOR]
"""Who chooses: our planner, or a program."""


class Chooser(Planner, frozen=True, kw_only=True):
    """An operation that finds places, by our planner or by an allocator.

    Attributes
    ----------
    iallocator
        Who chooses: ``hail`` is the planner, another name an allocator's on the
        master's node. The cluster's default without it, or for ``.``.
    """

    def _meant(self) -> str | None:
        # A struct has the fields of one base alone, so each operation declares it.
        found: str | None = getattr(self, "iallocator")  # noqa: B009
        check(found)
        return found

    def chooses(self, _view: View) -> bool:
        """Whether there is anything to choose."""
        return True

    def allocator_request(self, view: View) -> dict[str, Any] | None:
        """Return what an allocator is asked (:mod:`.message`); None for nothing."""
        raise NotImplementedError

    def allocator(self, view: View) -> str:
        """Return the allocator that chooses; empty for our planner."""
        name = chosen(view.config, self._meant())
        return name if name and self.chooses(view) else ""

    def ask_for_allocator(self, view: View) -> Iterator[Question]:
        """Ask all nodes for their room, if an allocator is to know it."""
        if self.allocator(view):
            yield from placement.ask_room(view.config, view.config.hosts())

    def consults(self, view: View) -> RunAllocator | None:
        """Return what the allocator is asked."""
        allocator_request = self.allocator_request(view)
        if allocator_request is None:
            return None
        return RunAllocator(
            allocator=self.allocator(view),
            message=message.written(view, allocator_request),
            arguments=words(view.config.cluster.default_iallocator_params),
            uid_pool=view.config.cluster.uid_pool,
        )
