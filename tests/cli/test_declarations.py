# SPDX-License-Identifier: BSD-2-Clause
"""Every option of every command is read, or says that it asks for nothing."""

import ast
import inspect
import sys
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType

import pytest

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
from moorage.ops import OPERATIONS
from moorage.ops.backup import MODES

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


COMMANDS = [
    pytest.param(one, id=f"{program.name} {one.name}".strip())
    for program in [*programs(), *planners()]
    for one in program.commands
]


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


@pytest.mark.parametrize("one", COMMANDS)
def test_each_option_is_read_or_says_that_it_asks_for_nothing(one: Command) -> None:
    asking = [o for o in one.options if not o.moot and not o.refused]
    silent = [o for o in asking if not (fills(o, one) or is_read(o, one))]
    assert silent == []


@pytest.mark.parametrize("one", COMMANDS)
def test_no_flag_stands_for_two_options(one: Command) -> None:
    flags = [flag for option in one.options for flag in option.flags]
    assert len(flags) == len(set(flags))


@pytest.mark.parametrize("one", COMMANDS)
def test_each_option_has_words(one: Command) -> None:
    assert [o.flags[-1] for o in one.options if not o.help.strip()] == []


@pytest.mark.parametrize("one", COMMANDS)
def test_each_option_that_fills_a_field_takes_what_the_field_takes(
    one: Command,
) -> None:
    known = filled(one)
    for option in one.options:
        if fills(option, one) and not option.refused:
            field = known[option.name]
            assert option.metavar or field.type == "bool", option.flags
            assert set(field.choices) <= set(option.choices), option.flags


@pytest.mark.parametrize("one", COMMANDS)
def test_each_option_that_is_to_fill_a_field_has_one(one: Command) -> None:
    lost = [o.flags for o in one.options if o.field and o.name not in filled(one)]
    assert lost == []


@pytest.mark.parametrize("one", COMMANDS)
def test_a_switch_that_denies_its_field_says_so_itself(one: Command) -> None:
    for option in one.options:
        if fills(option, one) and not option.value:
            assert option.help != filled(one)[option.name].words, option.flags


@pytest.mark.parametrize("one", COMMANDS)
def test_what_asks_for_nothing_says_so(one: Command) -> None:
    for option in one.options:
        if option.moot:
            assert option.help.startswith("accepted"), option.flags
