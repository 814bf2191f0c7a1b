# SPDX-License-Identifier: BSD-2-Clause
"""The way through a program: usage, help, errors, exit status."""

import os
import shlex
import subprocess
import sys
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest

from moorage.cli import (
    gnt_backup,
    gnt_cluster,
    gnt_debug,
    gnt_disk,
    gnt_group,
    gnt_instance,
    gnt_job,
    gnt_network,
    gnt_node,
    gnt_os,
    gnt_storage,
)
from moorage.cli.arguments import parse
from moorage.cli.command import Call, Command, Operand, Option, Program
from moorage.cli.declaration import Verb
from moorage.cli.environment import socket_path
from moorage.cli.help import command_help, program_help
from moorage.cli.main import run
from moorage.cli.option_syntax import truth
from moorage.cli.terminal import Terminal
from moorage.errors import BadInput

PROGRAMS = [
    module.PROGRAM
    for module in (
        gnt_cluster,
        gnt_debug,
        gnt_disk,
        gnt_group,
        gnt_instance,
        gnt_job,
        gnt_network,
        gnt_node,
        gnt_os,
        gnt_backup,
        gnt_storage,
    )
]
COMMANDS = [
    pytest.param(program, command, id=f"{program.name}-{command.name}")
    for program in PROGRAMS
    for command in program.commands
]


@pytest.mark.parametrize(("program", "command"), COMMANDS)
def test_each_command_explains_itself_in_80_columns(
    program: Program, command: Command
) -> None:
    text = command_help(program, command)
    examples = [*command.examples]
    assert all(
        len(line) <= 80 for line in text.splitlines() if line.strip() not in examples
    )
    assert command.summary
    assert "  -h, --help" in text


@pytest.mark.parametrize(("program", "command"), COMMANDS)
def test_each_example_can_be_typed(program: Program, command: Command) -> None:
    del program
    for example in command.examples:
        name, *words = shlex.split(example)
        shown, argv = next(p for p in PROGRAMS if p.name == name).command(words)
        assert shown is not None
        parse(f"{name} {shown.name}", shown, argv)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_names_and_flags_are_given_once(program: Program) -> None:
    names = [name for command in program.commands for name in command.names]
    assert len(names) == len(set(names))
    assert all(len(line) <= 80 for line in program_help(program).splitlines())
    for command in program.commands:
        flags = [flag for option in command.options for flag in option.flags]
        assert len(flags) == len(set(flags)), command.name


def test_help(typed, same_screen) -> None:
    same_screen("gnt-disk-help", typed("gnt-disk --help").out)
    same_screen("gnt-disk-attach-help", typed("gnt-disk attach --help").out)


def test_commands_of_two_words_have_help(typed) -> None:
    for line in ("pool --help", "help pool", "--help pool"):
        shown = typed(f"gnt-storage {line}").out
        assert shown.startswith("gnt-storage pool: ")
        assert "disconnect" in shown
        assert "diagnose" not in shown
    for line in ("pool add --help", "help pool add"):
        assert typed(f"gnt-storage {line}").out.startswith(
            "Usage: gnt-storage pool add [OPTION]... POOL\n"
        )


def test_nothing_is_an_error_with_help(typed) -> None:
    assert typed("gnt-disk")[:2] == (1, "")


def test_version(typed) -> None:
    assert typed("gnt-disk --version").out.startswith("gnt-disk (moorage) ")


@pytest.mark.parametrize(
    ("line", "sentence", "hint"),
    [
        ("gnt-disk atach", "gnt-disk has no command 'atach'", "did you mean attach"),
        ("gnt-disk zzz", "gnt-disk has no command 'zzz'", "gnt-disk --help"),
        (
            "gnt-disk add --sise 1G",
            "has no option --sise",
            "did you mean --size",
        ),
        ("gnt-disk attach a", "needs DISK INSTANCE", "gnt-disk attach --help"),
        ("gnt-disk attach", "nothing was given", "gnt-disk attach --help"),
        ("gnt-disk detach a b", "takes DISK only: what is 'b'?", "--help"),
        ("gnt-cluster info x", "takes no names: what is 'x'?", "--help"),
        ("gnt-job list --json=1", "--json takes no value: what is '1'?", "--help"),
        ("gnt-disk attach a b --index x", "--index does not take 'x'", ""),
        ("gnt-disk list --units q", "--units is one of h, m, g, t, not 'q'", ""),
        ("gnt-disk list --separator", "--separator needs a value", ""),
        ("gnt-storage pool", "gnt-storage pool needs a command", "pool --help"),
        ("gnt-storage pool ad", "gnt-storage pool has no command 'ad'", "mean add?"),
        ("gnt-storage poo add", "gnt-storage has no command 'poo'", "--help"),
        ("gnt-storage pool add", "gnt-storage pool add needs POOL", "add --help"),
        ("gnt-cluster modify --add-pool a", "--add-pool needs two values", ""),
    ],
)
def test_wrong_usage_is_one_sentence(
    typed, line: str, sentence: str, hint: str
) -> None:
    status, out, err = typed(line)
    assert (status, out) == (1, "")
    assert err.startswith("error: ")
    assert sentence in err.splitlines()[0]
    assert hint in err
    assert err.endswith("nothing was changed\n")


def test_a_wrong_value_names_its_option(typed) -> None:
    screen = typed("gnt-disk add -t ext -s big data1")
    assert (screen.status, screen.err) == (
        1,
        (
            "Failure: prerequisites not met for this operation:\n"
            "error type: wrong_input, error details:\n"
            "--size: 'big' is not a size\n"
            "hint: write 512M, 10G or 1.5T\n"
            "code: bad-input · nothing was changed\n"
        ),
    )


def test_no_master(typed) -> None:
    screen = typed("gnt-disk list", MOORAGE_SOCKET="/nonexistent/luxi.sock")
    assert screen.status == 1
    assert "error: no master listens on /nonexistent/luxi.sock\n" in screen.err


def test_a_defect_of_ours_shows_no_trace(master, typed) -> None:
    master.answers["Query"] = {"nonsense": 1}
    screen = typed("gnt-disk list")
    assert screen.status == 1
    assert "KeyError" in screen.err
    assert "Traceback" not in screen.err
    with pytest.raises(KeyError):
        typed("gnt-disk list", MOORAGE_DEBUG="1")


def test_a_log_that_cannot_be_written_is_no_failure() -> None:
    """A master whose log is full ends as it was told to; none starts it again."""
    logged = (
        "import logging, sys\n"
        "from moorage.cli import moorage\n"
        "from moorage.cli.main import run\n"
        "from moorage.cli.terminal import Terminal\n"
        "from moorage.daemons.log_limit import write_log\n"
        "terminal = Terminal.standard()\n"
        "write_log()\n"
        "logging.warning('lost')\n"
        "sys.exit(run(moorage.PROGRAM, ['--version'], terminal))\n"
    )
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", logged],
            env={k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"},
            stdout=subprocess.PIPE,
            stderr=full,
            check=False,
        )
    assert (done.returncode, b"moorage" in done.stdout) == (0, True)


@pytest.mark.parametrize(
    ("streams", "status", "said"),
    [
        (">/dev/full", 1, "No space left on device\n"),
        ("<&- >&-", 0, ""),
        ("<&- >&- 2>&-", 0, ""),
        ("| :", 0, ""),
    ],
)
@pytest.mark.parametrize("program", ["gnt_disk", "htools.hbal"])
def test_output_that_cannot_be_written(
    program: str, streams: str, status: int, said: str
) -> None:
    typed = f"import sys; from moorage.cli.{program} import main; sys.exit(main())"
    done = subprocess.run(  # streams of a process of its own are the claim
        [
            "sh",
            "-c",
            f'exec "$@" {streams}',
            "sh",
            sys.executable,
            "-c",
            typed,
            "--help",
        ],
        env={k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode in (status, 120), "Traceback" in done.stderr) == (
        True,
        False,
    )
    assert said in done.stderr
    assert "unhandled" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_what_the_machine_refuses_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(_call: Call) -> int:
        raise PermissionError(13, "Permission denied", "/srv/founding")

    terminal = Terminal(StringIO(), StringIO(), StringIO(), {})
    commands = SimpleNamespace(COMMANDS=(Command("make", refused),))
    monkeypatch.setitem(sys.modules, "gnt_x.commands", commands)
    program = Program("gnt-x", "try", "gnt_x", (Verb("make", "commands", "Make"),))
    assert run(program, ["make"], terminal) == 1
    said = terminal.err.getvalue()
    assert "\n/srv/founding: Permission denied\n" in said
    assert "unhandled" not in said


# -- arguments -------------------------------------------------------------------------

MANY = Command(
    "x",
    lambda _: 0,
    (),
    (
        Option(("-a", "--all"), "switch"),
        Option(("-n", "--number"), "value", "N", int),
        Option(("-v",), "short only", "V"),
        Option(("--disk",), "several", "D", repeats=True),
        Option(
            ("--claim",), "bare", "yes|no", truth, choices=("yes", "no"), bare="yes"
        ),
    ),
)


def parsed(line: str) -> dict[str, object]:
    words = MANY._replace(operands=(Operand("W", 0, None),))
    return vars(parse("p x", words, line.split()))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("a -n 1 b --all c", {"words": ["a", "b", "c"], "number": 1, "all": True}),
        ("--num 2", {"number": 2}),
        ("-n3", {"number": 3}),
        ("--number=4", {"number": 4}),
        ("-n -5 a", {"number": -5, "words": ["a"]}),
        ("-v -x", {"v": "-x"}),
        ("--disk -1:add --disk 0:detach", {"disk": ["-1:add", "0:detach"]}),
        ("--claim no a", {"claim": False, "words": ["a"]}),
        ("--claim a", {"claim": True, "words": ["a"]}),
        ("--claim=no a", {"claim": False, "words": ["a"]}),
        ("--claim", {"claim": True}),
        ("--claim --number 4", {"claim": True, "number": 4}),
        ("-a -- -n", {"all": True, "words": ["-n"], "number": None}),
        ("", {"all": False, "number": None, "disk": [], "claim": None}),
    ],
)
def test_options_and_operands_mix(line: str, found: dict[str, object]) -> None:
    assert parsed(line).items() >= found.items()


def test_defaults_do_not_leak_from_call_to_call() -> None:
    assert parsed("--disk a")["disk"] == ["a"]
    assert parsed("--disk b")["disk"] == ["b"]


@pytest.mark.parametrize(
    ("environ", "path"),
    [
        ({}, "/run/moorage/luxi.sock"),
        ({"FORCE_LUXI_SOCKET": "/a/s"}, "/a/s"),
        ({"FORCE_LUXI_SOCKET": "query"}, "/run/moorage/luxi.sock"),
        ({"FORCE_LUXI_SOCKET": "/a/s", "MOORAGE_SOCKET": "/b/s"}, "/b/s"),
    ],
)
def test_where_the_socket_is(environ: dict[str, str], path: str) -> None:
    assert socket_path(environ) == path


def test_default_arguments_come_from_the_environment(master, typed) -> None:
    master.answers["Query"] = {"fields": [], "data": []}
    typed("gnt-disk list", GNT_DISK_LIST="-o name,size")
    assert master.calls[-1] == ("Query", ["disk", ["name", "size"], None])
    assert "cannot be split" in typed("gnt-disk list", GNT_DISK_LIST="'").err


def test_truth() -> None:
    assert (truth("Yes"), truth("false")) == (True, False)
    with pytest.raises(BadInput, match="neither yes nor no"):
        truth("maybe")


# -- asking ----------------------------------------------------------------------------


def test_nobody_is_asked_without_a_terminal(master, typed) -> None:
    screen = typed("gnt-disk remove data1")
    assert screen.status == 1
    assert "nobody is here to be asked" in screen.err
    assert "hint: add -f to go on" in screen.err
    assert master.calls == []


@pytest.mark.parametrize(("answer", "status", "jobs"), [("y\n", 0, 1), ("\n", 1, 0)])
def test_a_person_is_asked(master, typed, answer: str, status: int, jobs: int) -> None:
    screen = typed("gnt-disk remove data1", answer)
    assert screen.status == status
    assert "all its data. Continue? [y/N]: " in screen.err
    assert len(master.ops) == jobs


@pytest.mark.parametrize("flag", ["-f", "--yes", "--dry-run"])
def test_options_answer_for_a_person(typed, flag: str) -> None:
    assert typed(f"gnt-disk remove {flag} data1", "").status == 0


def test_no_input_refuses_even_at_a_terminal(master, typed) -> None:
    assert typed("gnt-disk remove --no-input data1", "y\n").status == 1
    assert master.ops == []


def test_red_only_where_it_shows(typed) -> None:
    assert "\x1b[1;31merror" in typed("gnt-disk x", "", TERM="xterm").err
    assert "\x1b" not in typed("gnt-disk x", "", TERM="xterm", NO_COLOR="1").err
    assert "\x1b" not in typed("gnt-disk x", "", TERM="dumb").err


# -- start-up --------------------------------------------------------------------------

HEAVY = {
    *("aiohttp", "asyncio", "cryptography", "msgspec", "rich", "rpds"),
    *("sqlite3", "difflib", "importlib.metadata", "moorage.model", "moorage.daemons"),
}


@pytest.mark.parametrize("program", [program.name for program in PROGRAMS])
def test_a_list_imports_nothing_heavy(program: str) -> None:
    module = f"moorage.cli.{program.replace('-', '_')}"
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run(  # the modules of a fresh process are the claim
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert HEAVY & set(done.stdout.split()) == set()
