# SPDX-License-Identifier: BSD-2-Clause
"""What an allocator says: nothing of it is believed before it is looked at.

Its words only narrow what may be chosen. Whether what is left will do, the checks say
that hold for our own planner's choice.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import DecodeError, ValidationError, convert, json

from moorage.errors import AllocatorFailed, MoorageError, NoCapacity
from moorage.jobs import View
from moorage.model import Config, Instance, Node

_LONGEST = 500
"""Characters of what an allocator says that an error repeats."""
Moved = list[tuple[str, str, list[str]]]
Failed = list[tuple[str, str | None]]


class Left(NamedTuple):
    """Which instances leave, and which do not.

    Attributes
    ----------
    nodes
        The one that it is to run on, by uuid.
    stuck
        Why an instance stays, by uuid.
    """

    nodes: dict[str, Node]
    stuck: dict[str, str]


def nodes(
    view: View, name: str, what: str, allowed: Iterable[Node], count: int
) -> tuple[Node, ...]:
    """Return the nodes that an allocator names for something.

    Parameters
    ----------
    name
        The allocator's.
    what
        For whom the nodes are: ``instance web1``.
    allowed
        The only nodes that it may name.

    Raises
    ------
    AllocatorFailed
        If its answer is none, or names others, or not `count` of them.
    NoCapacity
        If it says that there are none.
    """
    result = _result(view, name, what)
    names = _shaped(name, result, list[str])
    if len(names) != count or len(set(names)) != count:
        raise AllocatorFailed(
            f"allocator '{name}' names {len(names)} nodes for {what}, which needs "
            f"{count}{' different ones' if count > 1 else ''}"
        )
    return _known(view.config, name, what, names, allowed)


def moves(
    view: View, name: str, instances: Sequence[Instance], allowed: Iterable[Node]
) -> Left:
    """Return where an allocator sends instances that leave their nodes.

    Of its answer only the places count: what jobs take them there is our decision.

    Raises
    ------
    AllocatorFailed
        If its answer is none, or names others, or leaves an instance out.
    NoCapacity
        If it says that it finds no way.
    """
    result = _result(view, name, f"{len(instances)} instances")
    moved, failed, _ = _shaped(name, result, tuple[Moved, Failed, list[Any]])
    going = {inst: names for inst, _, names in moved}
    stuck = dict(failed)
    allowed, known = list(allowed), {one.name for one in instances}
    if strange := sorted((going.keys() | stuck.keys()) - known):
        raise AllocatorFailed(
            f"allocator '{name}' speaks of instance {_short(strange[0])}, for which it "
            "was not asked"
        )
    found, staying = dict[str, Node](), dict[str, str]()
    for one in instances:
        if names := going.get(one.name):
            what = f"instance {one.name}"
            (found[one.uuid],) = _known(view.config, name, what, names[:1], allowed)
        else:
            told = stuck.get(one.name) or "it does not say why"
            staying[one.uuid] = f"allocator '{name}' finds no node: {_short(told)}"
    return Left(found, staying)


def _known(
    config: Config, name: str, what: str, names: Sequence[str], allowed: Iterable[Node]
) -> tuple[Node, ...]:
    may, found = {node.uuid for node in allowed}, list[Node]()
    for one in names:
        try:
            node = config.node(one)
        except MoorageError:
            raise AllocatorFailed(
                f"allocator '{name}' names node {_short(one)} for {what}, and there is "
                "no such node"
            ) from None
        if node.uuid not in may:
            raise AllocatorFailed(
                f"allocator '{name}' names node {node.name} for {what}, which is not "
                "one of those that it may be on",
                node=node.name,
            )
        found.append(node)
    return tuple(found)


def _result(view: View, name: str, what: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the result of an answer that says that there is one."""
    printed = view.advice or ""
    try:
        answer = json.decode(printed)
    except (DecodeError, UnicodeError, RecursionError):
        end = _short(printed[-_LONGEST:]) or "nothing"
        raise AllocatorFailed(
            f"what allocator '{name}' printed is not JSON; it ends with: {end}"
        ) from None
    if not isinstance(answer, Mapping):
        raise AllocatorFailed(f"what allocator '{name}' printed is no JSON object")
    success, info = answer.get("success"), answer.get("info")
    if not isinstance(success, bool) or not isinstance(info, str):
        raise AllocatorFailed(
            f"the answer of allocator '{name}' lacks 'success' (true or false) or "
            "'info' (a text)"
        )
    if not success:
        told = _short(info) or "it does not say why"
        raise NoCapacity(f"allocator '{name}' finds no place for {what}: {told}")
    # Ganeti's of before 2.4 call the result so.
    result = answer.get("result", answer.get("nodes"))
    if result is None:
        raise AllocatorFailed(f"the answer of allocator '{name}' lacks 'result'")
    return result


def _shaped(name: str, result: Any, kind: Any) -> Any:  # noqa: ANN401 - as `kind` says
    try:
        return convert(result, kind)
    except ValidationError as error:
        raise AllocatorFailed(
            f"the result of allocator '{name}' is not of the shape that was asked for: "
            f"{_short(str(error))}"
        ) from None


def _short(text: str) -> str:
    """Return words of a program on one line, with nothing that a terminal obeys."""
    shown = "".join(one if one.isprintable() else " " for one in text[: _LONGEST * 2])
    return " ".join(shown.split())[:_LONGEST]
