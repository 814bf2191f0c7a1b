# SPDX-License-Identifier: BSD-2-Clause
"""From words to options and operands, as Ganeti's programs read them.

Options and operands mix freely, an option's value may begin with a dash
(``--disk -1:add``), a long option may be cut short while it stays unique.
"""

import argparse
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from moorage.errors import NotSupported

from .declaration import Command, Option, Options, Usage

_NO_VALUE = re.compile(r"argument (\S+): ignored explicit argument (.*)", re.DOTALL)

_WIDE = partial(argparse.HelpFormatter, width=80)
"""Of texts that nobody sees: to ask how wide the terminal is loads compressors."""


class _Parser(argparse.ArgumentParser):
    """A parser that raises instead of leaving."""

    def error(self, message: str) -> NoReturn:
        found = _NO_VALUE.fullmatch(message)
        if found:
            message = f"{found[1]} takes no value: what is {found[2]}?"
        raise Usage(f"{self.prog}: {message}", hint=f"{self.prog} --help")


def parse(prog: str, command: Command, argv: Sequence[str]) -> Options:
    """Return the values of the options; ``words`` holds the operands.

    Raises
    ------
    BadInput
        If something does not fit; the hint says what was likely meant.
    """
    parser = _Parser(
        prog=prog,
        usage="",
        formatter_class=_WIDE,
        add_help=False,
        argument_default=None,
    )
    parser.add_argument("-h", "--help", action="store_true", dest="wants_help")
    for name, option in command.named:
        _add(parser, name, option)
    parser.add_argument("words", nargs="*")
    for word in argv:
        _check_text(word)
    after: list[str] = []
    doubts: list[Usage] = []
    words = list(_joined(command, argv, after, doubts))
    found, extra = parser.parse_known_intermixed_args(words)
    found.words += after
    for word in extra:
        raise _unknown_option(prog, command, word)
    if not found.wants_help:
        _check_refused(command, vars(found))
        _check_count(prog, command, found.words, doubts)
        _join(command, vars(found))
    return Options(**vars(found))


def _check_refused(command: Command, values: Mapping[str, Any]) -> None:
    """Raise `NotSupported` for an option that is known only to be refused."""
    for name, option in command.named:
        if option.refused and values[name] not in (None, False, []):
            flag = option.flags[-1]
            raise NotSupported(f"{flag} is not supported: {option.refused}")


def _join(command: Command, values: dict[str, Any]) -> None:
    """Make one value of those of each option that wants it so."""
    for name, option in command.named:
        if option.join:
            values[name] = option.join(values[name])


def _check_text(word: str) -> None:
    """Raise `Usage` for bytes that are no text, which nothing could be called."""
    try:
        whole = "\0" not in word and word.encode()
    except UnicodeEncodeError:
        whole = False
    if whole is False:
        raise Usage(f"{word[:40]!a} is not text in UTF-8")


def _add(parser: argparse.ArgumentParser, name: str, option: Option) -> None:
    if not option.metavar:
        parser.add_argument(
            *option.flags,
            action="store_const",
            const=option.value,
            dest=name,
            default=_unset(option),
        )
        return
    parser.add_argument(
        *option.flags,
        action="append" if option.repeats else "store",
        dest=name,
        type=option.read,
        default=[] if option.repeats else option.default,
    )


def _unset(option: Option) -> Any:  # noqa: ANN401 - of any type
    """Return the value of a switch that is not given."""
    otherwise = not option.value if isinstance(option.value, bool) else None
    return otherwise if option.default is None else option.default


def _joined(
    command: Command, argv: Sequence[str], after: list[str], doubts: list[Usage]
) -> Iterator[str]:
    """Yield the words, each option's value tied to it so that no dash can mislead.

    What follows ``--`` goes to `after`: it is not for options. `doubts` is told of
    operands that may have been meant for the option before them.
    """
    options = {flag: option for option in command.options for flag in option.flags}
    words = deque(argv)
    while words:
        word = words.popleft()
        if word == "--":
            after.extend(words)
            return
        option = options.get(word) or _abbreviated(options, word)
        if option and option.metavar:
            yield f"{_tie(option)}{_value(option, words, doubts)}"
        else:
            yield from _loosened(options, word)


def _abbreviated(options: dict[str, Option], word: str) -> Option | None:
    if not word.startswith("--"):
        return None
    fitting = {id(o): o for flag, o in options.items() if flag.startswith(word)}
    return next(iter(fitting.values())) if len(fitting) == 1 else None


def _tie(option: Option) -> str:
    """Return what stands before a value so that it belongs to the option."""
    long = (f"{flag}=" for flag in option.flags if flag.startswith("--"))
    return next(long, option.flags[0])


def _value(option: Option, words: deque[str], doubts: list[Usage]) -> str:
    """Take the value of an option from the words behind it; two are ``FIRST=SECOND``.

    Raises
    ------
    Usage
        If there is none.
    """
    value = words[0] if words else None
    if option.bare and value not in option.choices:
        if value is not None and not value.startswith("-"):
            doubts.append(option.misfit(value))
        return option.bare
    if value is None:
        raise Usage(f"{option.flags[-1]} needs a value, {option.metavar}")
    if value == "--":
        raise Usage(f"{option.flags[-1]} does not take '--'")
    words.popleft()
    if not option.pair or "=" in value:
        return value
    if not words:
        raise Usage(f"{option.flags[-1]} needs two values, {option.metavar}")
    return f"{value}={words.popleft()}"


def _loosened(options: dict[str, Option], word: str) -> Iterator[str]:
    """Yield ``--filter=X`` as two words: Ganeti's is a switch, people give it a value.

    (Its value is the operand that follows.)
    """
    flag, equals, value = word.partition("=")
    if equals and flag == "--filter" and flag in options:
        yield from (flag, value)
    else:
        yield word


def _check_count(
    prog: str, command: Command, words: Sequence[str], doubts: Sequence[Usage]
) -> None:
    operands = command.operands
    least = sum(operand.least for operand in operands)
    ends = [operand.most for operand in operands if operand.most is not None]
    most = sum(ends) if len(ends) == len(operands) else None
    usage = " ".join(operand.usage for operand in operands)
    if len(words) < least:
        missing = "no more was given" if words else "nothing was given"
        raise Usage(f"{prog} needs {usage}: {missing}", hint=f"{prog} --help")
    if most is not None and len(words) > most:
        if doubts:
            raise doubts[0]
        wanted = f"takes {usage} only" if usage else "takes no names"
        raise Usage(
            f"{prog} {wanted}: what is '{words[most]}'?",
            hint=command.surplus or f"{prog} --help",
        )


def _unknown_option(prog: str, command: Command, word: str) -> Usage:
    flags = [flag for option in command.options for flag in option.flags]
    name = word.partition("=")[0]
    return Usage(f"{prog} has no option {name}", hint=close(name, flags, prog))


def close(word: str, known: Sequence[str], prog: str) -> str:
    """Return a hint with what `word` was likely meant to be."""
    from difflib import get_close_matches  # noqa: PLC0415 - on the way out only

    found = get_close_matches(word, known, n=2)
    return f"did you mean {' or '.join(found)}?" if found else f"{prog} --help"
