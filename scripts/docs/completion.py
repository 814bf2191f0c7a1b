# SPDX-License-Identifier: BSD-2-Clause

"""Write what shells complete for all programs, from what they declare.

``python scripts/docs/completion.py DIR`` writes ``DIR/moorage`` for bash and
``DIR/_moorage`` for zsh, which reads the former. Words are looked up in a table; names
of objects are asked of the master, and there are none where it gives no answer.
"""

import shlex
import sys
from collections.abc import Iterator, Sequence

from declared import write

from moorage.cli.command import Command, Option, Program, planners, programs

_LISTED = {
    "INSTANCE": "gnt-instance",
    "NODE": "gnt-node",
    "DISK": "gnt-disk",
    "GROUP": "gnt-group",
    "JOB": "gnt-job",
    "JOB_ID": "gnt-job",
    "NETWORK": "gnt-network",
}
"""Which program lists the objects that an operand or a value stands for."""

_BASH = r"""# Written by scripts/docs/completion.py from what the programs declare.
# Words of `PROGRAM COMMAND`: commands, options, and @what its operands are.
declare -gA _moorage_words=(
{words})
# What `PROGRAM COMMAND OPTION` takes: words to choose from, or @what it is.
declare -gA _moorage_values=(
{values})

_moorage_offer() {{
    local word
    for word in $1; do
        case $word in
            @file) compgen -f -- "$2" ;;
            @*) compgen -W "$(_moorage_names "${{word#@}}")" -- "$2" ;;
            *) compgen -W "$word" -- "$2" ;;
        esac
    done
}}

_moorage_names() {{
    local field=name
    [[ $1 != gnt-job ]] || field=id
    "$1" list --no-headers -o $field 2>/dev/null
}}

_moorage() {{
    local key=${{COMP_WORDS[0]##*/}} word=${{COMP_WORDS[COMP_CWORD]}} at
    for ((at = 1; at <= 2 && at < COMP_CWORD; at++)); do
        [[ -n ${{_moorage_words["$key ${{COMP_WORDS[at]}}"]+x}} ]] || break
        key+=" ${{COMP_WORDS[at]}}"
    done
    local before=${{COMP_WORDS[COMP_CWORD - 1]}}
    local offers=${{_moorage_values["$key $before"]-${{_moorage_words["$key"]}}}}
    mapfile -t COMPREPLY < <(_moorage_offer "$offers" "$word")
}}

complete -o default -F _moorage {programs}
"""

_ZSH = """#compdef {programs}
# Written by scripts/docs/completion.py: bash's completion serves zsh, too.
autoload -U +X bashcompinit && bashcompinit
source /usr/share/bash-completion/completions/moorage
"""


def words(program: Program) -> Iterator[tuple[str, list[str]]]:
    """Yield what may follow each beginning of a command line."""
    for command in program.commands:
        if not command.name:
            yield program.name, _after(command)
            return
    yield program.name, sorted({one.name.split()[0] for one in program.commands})
    for command in program.commands:
        for name in command.names:
            first, _, second = name.partition(" ")
            if second:
                yield f"{program.name} {first}", [second]
            yield f"{program.name} {name}", _after(command)


def _after(command: Command) -> list[str]:
    offered = (option for option in command.options if not option.refused)
    flags = [flag for option in offered for flag in option.flags]
    return flags + [_kind(operand.name) for operand in command.operands]


def _kind(name: str) -> str:
    """Return where the names that a word stands for are looked up."""
    if "|" in name:
        parts = name.split("|")
        known = [f"@{_LISTED[one]}" for one in parts if one in _LISTED]
        return " ".join(known or parts)
    return f"@{_LISTED[name]}" if name in _LISTED else "@file"


def values(program: Program) -> Iterator[tuple[str, list[str]]]:
    """Yield what each option that takes a value is offered."""
    for command in program.commands:
        for name in command.names:
            for option in command.options:
                prefix = f"{program.name} {name}".strip()
                for flag in option.flags if option.metavar else ():
                    yield f"{prefix} {flag}", _taken(option)


def _taken(option: Option) -> list[str]:
    if option.choices:
        return list(option.choices)
    return [_kind(option.metavar)] if option.metavar in _LISTED else ["@file"]


def _table(entries: Sequence[tuple[str, list[str]]]) -> str:
    merged: dict[str, list[str]] = {}
    for key, offered in entries:
        merged.setdefault(key, []).extend(offered)
    return "".join(
        f"  [{shlex.quote(key)}]={shlex.quote(' '.join(offered))}\n"
        for key, offered in merged.items()
    )


def scripts() -> dict[str, str]:
    """Return the scripts by the names of their files."""
    every = [*programs(), *planners()]
    names = " ".join(one.name for one in every)
    bash = _BASH.format(
        words=_table([entry for one in every for entry in words(one)]),
        values=_table([entry for one in every for entry in values(one)]),
        programs=names,
    )
    return {"moorage": bash, "_moorage": _ZSH.format(programs=names)}


if __name__ == "__main__":
    write(scripts(), *sys.argv[1:])
