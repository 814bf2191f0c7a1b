# SPDX-License-Identifier: BSD-2-Clause
"""The commands on tags, which every program whose objects have tags offers."""

from collections.abc import Callable

from moorage.errors import BadInput
from moorage.units import counted

from .command import Call, Command, Operand, Option
from .follow import fetch, perform
from .options import DEBUG, JOB, JSON, PRIORITY

_KINDS = {
    "gnt-storage pool": "pool",
    "gnt-cluster": "cluster",
    "gnt-group": "nodegroup",
    "gnt-network": "network",
    "gnt-node": "node",
    "gnt-instance": "instance",
    "gnt-disk": "disk",
}
"""The kind of object by what stands before the command."""
_FROM = Option(
    ("--from",), "a file with more tags, one a line; - for the input", "FILE"
)
_NAMES = {
    "gnt-storage pool": "fast",
    "gnt-group": "default",
    "gnt-network": "lan",
    "gnt-node": "node1",
    "gnt-instance": "web1",
    "gnt-disk": "data1",
}
"""An object of each, for the examples."""
_TAG = Operand("TAG", 0, None)


def _show(call: Call) -> None:
    kind, name, _ = _about(call)
    tags = call.client.tags(kind, name or "")
    call.show(tags, tags)


def _search(call: Call) -> int:
    (pattern,) = call.words
    found = fetch(call, pattern=pattern)
    call.show(found, (f"{path} {tag}" for path, tag in found))
    return int(not found)


def _changes(did: str, how: str) -> Callable[[Call], None]:
    """Return the handler of a command that gives tags to an object, or takes some."""
    return lambda call: _change(call, did, how)


def _change(call: Call, did: str, how: str) -> None:
    kind, name, tags = _about(call)
    tags += _listed(call)
    if not tags:
        raise BadInput("no tag was named", hint="--from FILE takes those in a file")
    target = {"kind": kind, "tags": tags} | ({"name": name} if name else {})
    perform(call, **target)
    what = f"{kind} {name}" if name else f"the {kind}"
    call.terminal.print(f"{did} {counted(len(tags), 'tag')} {how} {what}")


def _about(call: Call) -> tuple[str, str | None, list[str]]:
    """Return the kind and the name of the object, and the other words."""
    kind = _KINDS[call.prefix]
    if kind == "cluster":
        return kind, None, list(call.words)
    return kind, call.words[0], call.words[1:]


def _listed(call: Call) -> list[str]:
    """Return the tags in the file that was named, if any."""
    source = call.option("from")
    if source is None:
        return []
    from pathlib import Path  # noqa: PLC0415 - start-up time

    try:
        text = call.terminal.inp.read() if source == "-" else Path(source).read_text()
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise BadInput(f"{source} cannot be read: {why}") from None
    return [line.strip() for line in text.splitlines() if line.strip()]


_SEARCH = Command(
    "search-tags",
    _search,
    (Operand("PATTERN"),),
    (PRIORITY, JSON, DEBUG),
    examples={"gnt-cluster search-tags ^gold$": "whatever is gold"},
    operation="OP_TAGS_SEARCH",
)


def commands(program: str) -> tuple[Command, ...]:
    """Return the commands on tags of a program.

    Parameters
    ----------
    program
        Its name: ``gnt-disk``.
    """
    whole = _KINDS[program] == "cluster"
    search_too = (_SEARCH,) if whole else ()
    word = program.replace("-", " ").split()[-1]
    about = () if whole else (Operand(word.upper()),)
    name = "" if whole else f" {_NAMES[program]}"
    return (
        Command("list-tags", _show, about, (JSON, DEBUG)),
        Command(
            "add-tags",
            _changes("Added", "to"),
            (*about, _TAG),
            (_FROM, *JOB),
            examples={f"{program} add-tags{name} gold": "the tag gold"},
            operation="OP_TAGS_SET",
        ),
        Command(
            "remove-tags",
            _changes("Removed", "from"),
            (*about, _TAG),
            (_FROM, *JOB),
            operation="OP_TAGS_DEL",
        ),
        *search_too,
    )
