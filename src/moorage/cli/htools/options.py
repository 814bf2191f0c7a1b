# SPDX-License-Identifier: BSD-2-Clause
"""The options that the placement programs share, each declared once."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from typing import Any, Final, NoReturn

from moorage.cli.htools.about import ABOUT
from moorage.cli.htools.spelling import Misspelled, spelled
from moorage.errors import MoorageError

_MOST: Final = 10**18


def number(least: float = -_MOST, most: float = _MOST) -> Callable[[str], float]:
    """Return a reader of numbers in a range, for an option."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not {_ranged('', least, most)}"
            )
        return value

    return read


def whole(least: int = -_MOST, most: int = _MOST) -> Callable[[str], int]:
    """Return a reader of whole numbers in a range, for an option."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = most + 1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not {_ranged('whole ', least, most)}"
            )
        return value

    return read


def _ranged(kind: str, least: float, most: float) -> str:
    """Return what a number must be, in words."""
    words = f"a {kind}number"
    if least > -_MOST:
        words += f" from {least}"
    return words + (f" up to {most}" if most < _MOST else "")


_OPTIONS: Final[dict[str, tuple[tuple[str, ...], dict[str, Any]]]] = {
    "text": (("-t", "--text-data"), {"metavar": "FILE"}),
    "rapi": (("-m", "--master"), {"metavar": "ADDRESS"}),
    "luxi": (("--luxi",), {"metavar": "SOCKET"}),
    "ialloc": (("-I", "--ialloc-src"), {"metavar": "FILE"}),
    "simulate": (
        ("--simulate",),
        {"metavar": "SPEC", "action": "append", "default": []},
    ),
    "print_nodes": (("--print-nodes",), {"metavar": "FIELDS"}),
    "print_instances": (("--print-instances",), {"action": "store_true"}),
    "print_commands": (("--print-commands",), {"metavar": "FILE"}),
    "save": (("-S", "--save"), {"metavar": "FILE"}),
    "verbose": (("-v", "--verbose"), {"action": "count", "default": 0}),
    "quiet": (("-q", "--quiet"), {"action": "count", "default": 0}),
    "offline": (
        ("-O", "--offline"),
        {"metavar": "NODE", "action": "append", "default": []},
    ),
    "group": (("-G", "--group"), {"metavar": "ID"}),
    "max_length": (
        ("-l", "--max-length"),
        {"metavar": "N", "type": whole(), "default": -1},
    ),
    "min_score": (
        ("-e", "--min-score"),
        {"metavar": "EPSILON", "type": number(), "default": 1e-9},
    ),
    "min_gain": (
        ("-g", "--min-gain"),
        {"metavar": "DELTA", "type": number(), "default": 0.01},
    ),
    "min_gain_limit": (
        ("--min-gain-limit",),
        {"metavar": "SCORE", "type": number(), "default": 0.1},
    ),
    "max_cpu": (("--max-cpu",), {"metavar": "RATIO", "type": number(0, 2**31)}),
    "min_disk": (
        ("--min-disk",),
        {"metavar": "RATIO", "type": number(0, 1), "default": 0.0},
    ),
    "no_disk_moves": (("--no-disk-moves",), {"action": "store_true"}),
    "no_instance_moves": (("--no-instance-moves",), {"action": "store_true"}),
    "evac_mode": (("-E", "--evac-mode"), {"action": "store_true"}),
    "restricted": (("--restricted-migration",), {"action": "store_true"}),
    "ignore_soft_errors": (("--ignore-soft-errors",), {"action": "store_true"}),
    "no_capacity_checks": (("--no-capacity-checks",), {"action": "store_true"}),
    "select": (("--select-instances",), {"metavar": "INSTS", "default": ""}),
    "exclude": (("--exclude-instances",), {"metavar": "INSTS", "default": ""}),
    "exclusion_tags": (("--exclusion-tags",), {"metavar": "TAG,...", "default": ""}),
    "dynu": (("-U", "--dynu-file"), {"metavar": "FILE"}),
    "ignore_dynu": (("--ignore-dynu",), {"action": "store_true"}),
    "mond": (("--mond",), {"metavar": "CHOICE"}),
    "mond_data": (("--mond-data",), {"metavar": "FILE"}),
    "mond_xen": (("--mond-xen",), {"action": "store_true"}),
    "mond_exit": (("--exit-on-missing-mond-data",), {"action": "store_true"}),
    "kvm_memory": (
        ("--static-kvm-node-memory",),
        {"metavar": "N", "type": whole(most=2**44), "default": 4096},
    ),
    "machine": (("--machine-readable",), {"metavar": "CHOICE"}),
    "accept_existing": (("--accept-existing-errors",), {"action": "store_true"}),
    "independent": (("--independent-groups",), {"action": "store_true"}),
    "explain": (("--explain",), {"action": "store_true"}),
}

_LONGEST_LINE: Final = 300
_INTERRUPTED: Final = 130
"""Exit status after ^C, as the shell counts."""

SOURCES: Final = ("text", "rapi", "luxi", "ialloc", "kvm_memory")
MOND: Final = ("mond", "mond_data", "mond_xen", "mond_exit")
LEVELS: Final = ("verbose", "quiet")


class _Formatter(argparse.HelpFormatter):
    """Help as wide as the terminal, asked without what argparse would load for it."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


def _columns() -> int:
    try:
        return int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(1).columns
    except (OSError, ValueError):
        return 80


class _Parser(argparse.ArgumentParser):
    """A parser that complains as Ganeti's tools do, where scripts look for it."""

    def error(self, message: str) -> NoReturn:
        """Say in one line what is wrong with a value; the exit status is 1."""
        if message.startswith("unrecognized arguments"):
            message = "This program doesn't take any arguments."
        sys.stderr.write(f"Error: {one_line(message)}\n")
        raise SystemExit(1)

    def misspelled(self, message: str) -> NoReturn:
        """Say that something is no option, and what is one; the exit status is 2."""
        sys.stderr.write(f"Command line error: {message}\n\n{self.format_help()}")
        raise SystemExit(2)

    @property
    def flags(self) -> dict[str, argparse.Action]:
        """Every option, by each of its spellings."""
        return dict(self._option_string_actions)

    @property
    def actions(self) -> list[argparse.Action]:
        """Every option, in order."""
        return list(self._actions)


class _Completion(argparse.Action):
    """Print what a shell may offer for each option."""

    def __init__(self, **how: Any) -> None:  # noqa: ANN401
        super().__init__(**how, nargs=0, help="show what completion offers, and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_rest: object) -> NoReturn:
        from moorage.cli.htools.completion import lines  # noqa: PLC0415 - rare

        assert isinstance(parser, _Parser)  # noqa: S101 - there is no other
        print("\n".join(lines(parser.prog, parser.actions)))
        raise SystemExit(0)


class _Version(argparse.Action):
    """Print the version, looked up only when somebody asks."""

    def __init__(self, **how: Any) -> None:  # noqa: ANN401
        super().__init__(**how, nargs=0, help="show the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_rest: object) -> NoReturn:
        from importlib.metadata import version  # noqa: PLC0415 - start-up time

        print(f"{parser.prog} (moorage) version {version('moorage')}")
        raise SystemExit(0)


def parser(program: str, about: str, *names: str) -> _Parser:
    """Return a parser that knows the options named."""
    made = _Parser(
        prog=program,
        description=about,
        allow_abbrev=False,
        formatter_class=_Formatter,
    )
    made.add_argument("-V", "--version", action=_Version)
    made.add_argument("--help-completion", action=_Completion)
    for name in names:
        flags, how = _OPTIONS[name]
        made.add_argument(*flags, dest=name, help=ABOUT[name], **how)
    return made


def parse(made: _Parser, argv: Sequence[str] | None) -> Any:  # noqa: ANN401
    """Return the options, in whichever of Ganeti's forms they are typed."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return made.parse_args(list(spelled(made.flags, words)))
    except Misspelled as error:
        made.misspelled(str(error))
    except MoorageError as error:
        made.error(error.message)


def verbosity(options: Any) -> int:  # noqa: ANN401
    """Return how much to say; 1 is usual."""
    return 1 + int(options.verbose) - int(getattr(options, "quiet", 0))


def is_machine(choice: str | None) -> bool:
    """Return whether --machine-readable asks for machine output."""
    return is_yes(choice)


def is_yes(choice: str | None) -> bool:
    """Return whether an option is given, and not with the word ``no``."""
    if choice is None or choice in {"", "yes", "no"}:
        return choice is not None and choice != "no"
    sys.stderr.write(f"Error: '{choice}' is neither yes nor no\n")
    raise SystemExit(1)


def names(text: str) -> tuple[str, ...]:
    """Return a list with commas between."""
    return tuple(text.split(",")) if text else ()


def one_line(text: str) -> str:
    """Return what somebody else said as one readable line."""
    line = " ".join(text.split())
    line = line if line.isprintable() else ascii(line)[1:-1]
    return line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + "..."


def run(work: Callable[[], int]) -> int:
    """Run a program's work; an error is one sentence and exit status 1."""
    _take_any_letter()
    try:
        status = work()
        sys.stdout.flush()
    except MoorageError as error:
        sys.stdout.flush()
        hint = f"hint: {error.hint}\n" if error.hint else ""
        sys.stderr.write(f"Error: {error.message}\n{hint}")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted\n")
        return _INTERRUPTED
    except MemoryError:
        sys.stderr.write("Error: there is not enough memory for this\n")
        return 1
    except OSError as error:
        return _unwritten(error)
    return status


def _take_any_letter() -> None:
    """Let output hold names with letters that the terminal has not."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _unwritten(error: OSError) -> int:
    """Say that the output cannot be written; silently where nobody reads it."""
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - Path costs start-up time
        # The end of the program must not try once more to write it.
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    if not isinstance(error, BrokenPipeError):
        sys.stderr.write(f"Error: cannot write the output: {error.strerror}\n")
    return 1
