# SPDX-License-Identifier: BSD-2-Clause
"""Every option of every command is read, or says that it asks for nothing."""

import ast
import inspect
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType

from moorage.cli import (
    command,
    follow,
    help,  # noqa: A004
    htools,
    join_token,
    listing,
    main,
    nic_options,
    operation,
    options,
    policy_options,
)
from moorage.cli.command import Command, Option, planners, programs
from moorage.cli.htools import declared
from moorage.cli.operation import Performs
from moorage.jobs.fields import Field, fields
from moorage.ops import MODES, OPERATIONS

SHARED = (
    command,
    follow,
    join_token,
    listing,
    main,
    help,
    nic_options,
    operation,
    options,
    policy_options,
)


COMMANDS = {
    f"{program.name} {one.name}".strip(): one
    for program in [*programs(), *planners()]
    for one in program.commands
}


@cache
def words(module: ModuleType) -> frozenset[str]:
    """Return the texts and attributes in a module, but for the declarations."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
    return frozenset(found)


@cache
def planning() -> tuple[ModuleType, ...]:
    """Return the modules of the planner's programs, but for the declarations."""
    names = walk_packages(htools.__path__, f"{htools.__name__}.")
    return tuple(import_module(one.name) for one in names if "declared" not in one.name)


@cache
def beside(module: ModuleType) -> tuple[ModuleType, ...]:
    """Return a module and those of its package whose functions it uses."""
    package = module.__name__.rpartition(".")[0]
    functions = (one for one in vars(module).values() if inspect.isfunction(one))
    names = {module.__name__, *(one.__module__ for one in functions)}
    return tuple(sys.modules[name] for name in names if name.startswith(package))


def filled(one: Command) -> dict[str, Field]:
    """Return the fields that the options of a command may fill in, by name."""
    kinds = [OPERATIONS[one.operation]] if one.operation else []
    kinds += [way for (op_id, _), way in MODES.items() if op_id == one.operation]
    return {field.name: field for kind in kinds for field in fields(kind)}


def fills(option: Option, one: Command) -> bool:
    """Whether the command fills in an opcode's field by what an option says."""
    return option.field and option.name in filled(one)


def is_read(option: Option, one: Command) -> bool:
    if option in declared.ASKED:
        return True
    code = one.handler.more if isinstance(one.handler, Performs) else one.handler
    modules = (*beside(sys.modules[code.__module__]), *SHARED)
    if one.name == "":
        modules += planning()
    return any(option.name in words(module) for module in modules)


def those(claim: Callable[[Option, Command], object]) -> list[str]:
    """Return the options of which something is true, each after its command."""
    return [
        f"{name} {option.flags[-1]}"
        for name, command in COMMANDS.items()
        for option in command.options
        if claim(option, command)
    ]


def test_each_option_is_read_or_says_that_it_asks_for_nothing() -> None:
    def is_silent(option: Option, one: Command) -> bool:
        asks = not option.moot and not option.refused
        return asks and not (fills(option, one) or is_read(option, one))

    assert those(is_silent) == []


def test_no_flag_stands_for_two_options() -> None:
    for name, one in COMMANDS.items():
        flags = [flag for option in one.options for flag in option.flags]
        assert len(flags) == len(set(flags)), name


def test_each_option_has_words() -> None:
    assert those(lambda option, _: not option.help.strip()) == []


def test_each_option_that_fills_a_field_takes_what_the_field_takes() -> None:
    def is_narrower(option: Option, one: Command) -> bool:
        if option.refused or not fills(option, one):
            return False
        field = filled(one)[option.name]
        takes = option.metavar or field.type == "bool"
        return not takes or not set(field.choices) <= set(option.choices)

    assert those(is_narrower) == []


def test_each_option_that_is_to_fill_a_field_has_one() -> None:
    assert those(lambda o, one: o.field and o.name not in filled(one)) == []


def test_a_switch_that_denies_its_field_says_so_itself() -> None:
    def is_said_of_the_field(option: Option, one: Command) -> bool:
        denies = fills(option, one) and not option.value
        return denies and option.help == filled(one)[option.name].words

    assert those(is_said_of_the_field) == []


def test_what_asks_for_nothing_says_so() -> None:
    silent = those(lambda o, _: o.moot and not o.help.startswith("accepted"))
    assert silent == []
