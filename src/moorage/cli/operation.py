# SPDX-License-Identifier: BSD-2-Clause
"""Commands that are one operation, whose fields their operands and options fill in."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from moorage.errors import BadInput

from .command import Call
from .follow import perform

_WAYS = frozenset(
    (
        *("force", "force_params", "ignore_capacity", "ignore_ipolicy", "auto_promote"),
        *("conflicts_check", "hotplug", "hotplug_if_possible", "wait_for_sync"),
    )
)
"""Fields that say how something is to change, and not what."""


class Needs(NamedTuple):
    """One of some fields must be given; else a sentence and a hint are told."""

    fields: tuple[str, ...]
    sentence: str
    hint: str

    def check(self, given: Mapping[str, Any]) -> None:
        """Raise `BadInput` if none of the fields says anything."""
        if not any(given.get(field) for field in self.fields):
            raise BadInput(self.sentence, hint=self.hint)


class Performs(NamedTuple):
    """The handler of a command that just carries out its operation.

    Attributes
    ----------
    says
        What is printed at the end; fields, and `result`, stand in braces.
    asks
        The question that is asked before.
    warns
        Likewise, where somebody is there to answer it.
    lacks
        Hint for who gives no option: the operation changes what these say.
    needs
        What must be given besides the operands.
    more
        Returns fields besides those that operands and options fill in.
    tells
        What was changed, with fields in braces: printed with its new values.
    """

    says: str = ""
    asks: str = ""
    warns: str = ""
    lacks: str = ""
    needs: Needs | None = None
    more: Callable[[Call], Mapping[str, Any]] = lambda _: {}
    tells: str = ""

    def __call__(self, call: Call) -> int:
        """Carry it out."""
        more = self.more(call)
        fields = {**call.fields, **more}
        if self.lacks:
            fields = changes(call, self.lacks, **more)
        if self.needs:
            self.needs.check(fields)
        if self.asks:
            call.ask(self.asks.format_map(fields))
        if self.warns:
            call.warn(self.warns.format_map(fields))
        result = perform(call, **fields)
        if self.tells:
            given = {**call.given, **more}
            tell_changes(call, self.tells.format_map(fields), result or given.items())
        if self.says:
            words = {key: _told(value) for key, value in fields.items()}
            call.terminal.print(self.says.format_map(words | {"result": result}))
        return 0


def changes(
    call: Call,
    hint: str,
    sentence: str = "nothing to change",
    **more: Any,  # noqa: ANN401
) -> dict[str, Any]:
    """Return the fields of an operation that changes something.

    Parameters
    ----------
    hint, sentence
        What is said where nothing is to change.
    more
        Fields besides those that operands and options fill in.

    Raises
    ------
    BadInput
        If nothing is to change.
    """
    if not (call.given.keys() - _WAYS or more):
        raise BadInput(sentence, hint=hint)
    return {**call.fields, **more}


def migration_mode(call: Call) -> dict[str, str]:
    """Return how guests migrate, if ``--non-live`` says so.

    Raises
    ------
    BadInput
        If ``--migration-mode`` says it, too.
    """
    if not call.option("non_live"):
        return {}
    if call.option("mode"):
        raise BadInput("--non-live and --migration-mode do not go together")
    return {"mode": "non-live"}


def first_given(call: Call, names: Iterable[str]) -> str:
    """Return the flag of the first of some options that was given; empty if none."""
    options = dict(call.command.named)
    found = (options[name] for name in names if name in options)
    given = (one for one in found if one.is_given(call.option(one.name)))
    long = (flag for one in given for flag in one.flags if flag.startswith("--"))
    return next(long, "")


def tell_changes(call: Call, what: str, changed: Iterable[tuple[str, Any]]) -> None:
    """Print what was modified, and which values it has now."""
    call.terminal.print(f"Modified {what}")
    for name, value in changed:
        call.terminal.print(f" - {name:<5} -> {value}")


def _told(value: Any) -> Any:  # noqa: ANN401
    return ", ".join(value) if isinstance(value, list) else value
