# SPDX-License-Identifier: BSD-2-Clause

"""Write the generated pages of the docs from what the code declares.

A page is ``NAME.md.in`` in the docs, with a part that is made here in place of each
line ``@part@``. ``python scripts/docs/generate.py`` writes the pages; with ``--check``
it only says which are stale.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from enum import Flag
from pathlib import Path
from textwrap import wrap
from typing import Any

import checks
import library
import msgspec
import opcodes
import resources
import tools
from compared import comparison, counts
from declared import (
    Lines,
    code,
    field_rows,
    fields,
    records,
    rest,
    table,
    type_name,
)
from floors import drawing

from moorage import errors
from moorage.api.rapi.limits import Limits
from moorage.cli import options
from moorage.cli.command import Command, Option, Program, planners
from moorage.cli.command import programs as programs_of_commands
from moorage.cli.help import usage
from moorage.cli.htools import declared
from moorage.daemons.agent import Settings
from moorage.daemons.rapi import Settings as DoorSettings
from moorage.jobs import COMMON, Operation
from moorage.jobs.results import result_of
from moorage.jobs.words import about, attributes
from moorage.model import Disk, Provider
from moorage.ops import OPERATIONS
from moorage.protocol import OnDisk, OnGuest, Verb, answer_of, name_of
from moorage.protocol import declared as declared_verbs
from moorage.storage import TEMPLATES, Can, Site, Template
from moorage.storage.provider import OPTIONAL, SCRIPTS, SEARCH_PATH
from moorage.storage.templates.ext import Ext
from moorage.units import Mib
from moorage_cloud.conf import Conf

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
AGENT_TOML = ROOT / "debian" / "agent.toml"
CLOUD_TOML = ROOT / "cloud" / "debian" / "cloud.toml"
NOTE = "<!-- Written by scripts/docs/generate.py: change the code or the .md.in. -->"


def every_program() -> list[Program]:
    """Return every program that is declared, the planner's last."""
    return [*programs_of_commands(), *planners()]


def programs() -> Lines:
    """Yield a line a program."""
    for program in every_program():
        yield f"- [`{program.name}`](#{program.name}): {program.summary.rstrip('.')}"


def commands() -> Lines:
    """Yield every command of every program, with examples and options."""
    for program in every_program():
        yield from _program(program)


def _program(program: Program) -> Lines:
    yield f"## {program.name}"
    yield ""
    yield f"{program.summary[:1].upper()}{program.summary[1:].rstrip('.')}."
    yield ""
    for command in program.commands:
        yield from _command(program, command)


def _command(program: Program, command: Command) -> Lines:
    if command.name:
        yield f"### {program.name} {command.name}"
        yield ""
        yield f"{command.summary[:1].upper()}{command.summary[1:].rstrip('.')}."
        yield ""
    operands = "".join(f" {operand.usage}" for operand in command.operands)
    yield from (
        "```text",
        f"{' '.join(filter(None, (program.name, command.name)))} [OPTION]...{operands}",
        "```",
    )
    yield ""
    if command.here:
        yield f"Not over `MOORAGE_URL`: {command.here}."
        yield ""
    if command.aliases:
        yield f"Also called: {', '.join(map(code, command.aliases))}."
        yield ""
    if command.examples:
        rows = [[code(line), does] for line, does in command.examples.items()]
        yield from table(("example", "what it does"), rows)
    own, common = _split(command.options)
    yield from _options(own)
    if common:
        yield f"And {' and '.join(common)}."
        yield ""


def _split(given: tuple[Option, ...]) -> tuple[list[Option], list[str]]:
    """Return a command's own options, and links to the common ones that it has."""
    own, common = [option for option in given if not option.refused], []
    for group, link in (
        (options.ASKING, "the [options of questions](#options-of-questions)"),
        (options.JOB, "the [options of jobs](#options-of-jobs)"),
        (declared.SOURCES, "the [sources of a cluster](#sources-of-a-cluster)"),
        (declared.BALANCING, "the [limits of balancing](#limits-of-balancing)"),
        (declared.ASKED, "the [questions about the program](#about-the-program)"),
    ):
        shared = set(map(_words, group))
        if shared <= set(map(_words, own)):
            own = [option for option in own if _words(option) not in shared]
            common.append(link)
    return own, common


def _words(option: Option) -> tuple[tuple[str, ...], str]:
    return option.flags, option.help


def _options(given: Sequence[Option]) -> Lines:
    if given:
        rows = [[code(usage(one)), _meaning(one)] for one in given]
        yield from table(("option", "meaning"), rows)


def _meaning(option: Option) -> str:
    told = option.help
    if option.choices and option.choices[0] not in told:
        told += f"; one of {', '.join(map(code, option.choices))}"
    if option.repeats and "repeat" not in told:
        told += "; may be repeated"
    return told


def common() -> Lines:
    """Yield the fields that every opcode has."""
    told = ", ".join(sorted(map(code, COMMON - {"OP_ID"})))
    yield f"Every opcode also takes {told}."


def operations() -> Lines:
    """Yield every operation with its fields."""
    for op_id, operation in sorted(OPERATIONS.items()):
        yield from _operation(op_id, operation)


def _operation(op_id: str, operation: type[Operation]) -> Lines:
    yield f"## {op_id}"
    yield ""
    yield f"{about(operation)}."
    yield ""
    if rest(operation):
        yield from (rest(operation), "")
    yield from fields(operation)
    yield from _result(operation)


def _result(operation: type[Operation]) -> Lines:
    kind = result_of(operation)
    if kind is None:
        yield from ("Reports nothing.", "")
        return
    said = about(operation.result).removeprefix("Return ")
    yield from (f"Reports {said}: {code(type_name(kind))}.", "")


def result_types() -> Lines:
    """Yield the records that results are made of."""
    known = {one for each in OPERATIONS.values() for one in records(result_of(each))}
    for one in sorted(known, key=lambda one: one.__name__):
        yield from (f"### {one.__name__}", "", f"{about(one)}.", "")
        yield from fields(one)


def error_codes() -> Lines:
    """Yield every error, as a tree in a table."""
    rows = list(_errors(errors.MoorageError, 0))
    yield from table(("error", "code", "Ganeti's code", "meaning"), rows)


def _errors(kind: type[errors.MoorageError], depth: int) -> Iterator[list[str]]:
    told = "the root of the tree" if not depth else about(kind)
    indent = "&nbsp;" * 4 * depth
    yield [indent + code(kind.__name__), code(kind.code), code(kind.ganeti), told]
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from _errors(child, depth + 1)


def agent() -> Lines:
    """Yield the verbs of the protocol, by what they are about."""
    every = sorted(declared_verbs(), key=name_of)
    disks = [one for one in every if issubclass(one, OnDisk)]
    guests = [one for one in every if issubclass(one, OnGuest)]
    nodes = [one for one in every if one not in disks + guests]
    yield from _verbs("Verbs on one disk", disks)
    yield from _verbs("Verbs on one guest", guests)
    yield from _verbs("Verbs on a node", nodes)


def _verbs(title: str, kinds: Sequence[type[Verb[object]]]) -> Lines:
    yield f"## {title}"
    yield ""
    rows = [
        [
            code(name_of(one)),
            about(one),
            code(type_name(answer_of(one))),
            "yes" if one.reads else "",
            f"{one.limit:g}",
        ]
        for one in kinds
    ]
    yield from table(("verb", "what it does", "answer", "reads", "seconds"), rows)
    yield from _arguments(kinds)


def _arguments(kinds: Sequence[type[Verb[object]]]) -> Lines:
    """Yield a table of arguments, each with the verbs that take it."""
    takers: dict[tuple[str, ...], list[str]] = {}
    for kind in kinds:
        for row in field_rows(kind):
            takers.setdefault(row, []).append(code(name_of(kind)))
    rows = [
        [*row[:3], "all" if len(verbs) == len(kinds) else ", ".join(verbs), row[3]]
        for row, verbs in takers.items()
    ]
    yield from table(("argument", "type", "default", "of", "meaning"), rows)


def templates() -> Lines:
    """Yield what every template declares about itself."""
    verbs = [one for one in Can if one]
    rows = [list(_capabilities(one, verbs)) for _, one in sorted(TEMPLATES.items())]
    head = ["template", "mirror", "reach", *(_word(one) for one in verbs), "provider"]
    yield from table(head, rows)
    for name, one in sorted(TEMPLATES.items()):
        yield f"- `{name}`: {about(one)}. {rest(one)}".rstrip()
    yield ""


def _capabilities(template: type[Template], verbs: Sequence[Can]) -> Iterator[str]:
    declared = template.capabilities
    yield code(template.name)
    yield str(declared.mirror)
    yield str(declared.reach)
    for verb in verbs:
        yield "yes" if verb in declared.can else "-"
    yield "yes" if declared.provider else "-"


def _word(flag: Flag) -> str:
    return (flag.name or "").lower()


VARIABLES = {
    "VOL_NAME": "the volume's name, `<uuid>.ext.disk<n>`; never changes",
    "VOL_UUID": "the disk's uuid",
    "VOL_CNAME": "the name that the disk was made with, whatever it is called now; a "
    "snapshot's is `VOL_SNAPSHOT_NAME`; absent when there was none",
    "VOL_SIZE": "size in MiB; for `grow`, the old one",
    "VOL_NEW_SIZE": "the size to grow to, in MiB",
    "VOL_METADATA": "a note of at most 128 plain characters: `originstname+<instance>`",
    "VOL_SNAPSHOT_NAME": "name of the volume to make",
    "VOL_SNAPSHOT_SIZE": "its size in MiB",
    "VOL_OPEN_EXCLUSIVE": "`True`: this node alone; `False`: another one too",
    "VOL_EPOCH": "number of the attachment; only rises. Not in Ganeti",
    "VOL_NODE": "name of the node where the script runs. Not in Ganeti",
    "VOL_POOL": "the storage pool that the disk is in, or whose room is asked for; "
    "absent if it is in none. Not in Ganeti",
    "EXTP_PROVIDER": "the provider's name",
    "EXTP_ACCESS": "`kernelspace` or `userspace`",
    "EXTP_POOL": "as `VOL_POOL`, unless the disk has a parameter `pool`",
    "EXTP_SPEED": "any parameter of the disk: `EXTP_` and its name in capitals",
}
SHOWN = {"EXTP_SPEED": "EXTP_<NAME>"}


def search_path() -> Lines:
    """Yield where providers are looked for."""
    yield from (f"{n}. `{path}`" for n, path in enumerate(SEARCH_PATH, 1))


def scripts() -> Lines:
    """Yield the scripts of a provider."""
    rows = [[code(one), "yes", what] for one, what in SCRIPTS.items()]
    rows += [[code(one), "no", what] for one, what in OPTIONAL.items()]
    yield from table(("script", "required", "what it is to do"), rows)


def variables() -> Lines:
    """Yield what each script sees, as the template hands it over."""
    seen = {verb: _seen(steps) for verb, steps in _probes().items()}
    every = frozenset().union(*seen.values())
    if every != VARIABLES.keys():
        raise KeyError(f"variables without a word here: {every ^ VARIABLES.keys()}")
    rows = [
        [
            code(SHOWN.get(name, name)),
            *("x" if name in found else "" for found in seen.values()),
            meaning,
        ]
        for name, meaning in VARIABLES.items()
    ]
    yield from table(["variable", *seen, "meaning"], rows)


def _probes() -> dict[str, Generator[Any, Any, Any]]:
    """Return the steps of every verb, on a disk that has all that a disk can have."""
    provider = Provider(name="san", path="/san", optional=tuple(OPTIONAL))
    site = Site(
        node="node1", params={"speed": "1"}, providers={"san": provider}, pool="fast"
    )
    ext = Ext(site)
    disk = Disk(
        uuid="u",
        name="data1",
        dev_type="ext",
        logical_id=("san", "volume"),
        size=Mib(1),
        params={"provider": "san", "speed": "1"},
    )
    return {
        "create": ext.create(disk),
        "attach": ext.attach(disk),
        "detach": ext.detach(disk),
        "remove": ext.remove(disk),
        "grow": ext.grow(disk, Mib(2)),
        "setinfo": ext.setinfo(disk, "note"),
        "verify": ext.verify(disk),
        "snapshot": ext.snapshot(disk, "copy", Mib(1)),
        "open": ext.open(disk, exclusive=True),
        "close": ext.close(disk),
        "list": ext.volumes(disk.params),
        "capacity": ext.capacity(provider),
    }


def _seen(steps: Generator[Any, Any, Any]) -> frozenset[str]:
    found = frozenset(next(steps).env)
    steps.close()
    return found


def decisions() -> Lines:
    """Yield a row a decision: its number, and its title as a link."""
    rows = []
    for page in sorted((DOCS / "adr").glob("[0-9]*.md")):
        number, title = page.read_text().splitlines()[0].lstrip("# ").split(": ", 1)
        rows.append([number, f"[{title}]({page.name})"])
    yield from table(("number", "decision"), rows)


PARTS: dict[str, Callable[[], Lines]] = {
    "agent": agent,
    "about_options": lambda: _options(declared.ASKED),
    "asking_options": lambda: _options(options.ASKING),
    "balancing_options": lambda: _options(declared.BALANCING),
    "checks_by_object": checks.by_object,
    "checks_of_configuration": checks.of_configuration,
    "checks_unused": checks.unused,
    "checks_with_codes": checks.codes,
    "commands": commands,
    "common": common,
    "comparison": comparison,
    "counts": counts,
    "decisions": decisions,
    "errors": error_codes,
    "library_door": library.door_function,
    "library_loaded": library.loaded,
    "library_methods": library.methods,
    "library_values": library.values,
    "floors": lambda: drawing("moorage"),
    "floors_of_node": lambda: drawing("moorage.node"),
    "floors_of_ops": lambda: drawing("moorage.ops"),
    "floors_of_planner": lambda: drawing("moorage.htools"),
    "job_options": lambda: _options(options.JOB),
    "metrics": resources.metrics,
    "opcodes": operations,
    "programs": programs,
    "rapi_differences": tools.differences,
    "rapi_limits": lambda: fields(Limits),
    "rapi_resources": resources.resources,
    "rapi_roles": resources.roles,
    "rapi_settings": lambda: fields(DoorSettings),
    "results": result_types,
    "scripts": scripts,
    "search_path": search_path,
    "source_options": lambda: _options(declared.SOURCES),
    "settings": lambda: fields(Settings),
    "templates": templates,
    "tools_left_out": tools.left_out,
    "variables": variables,
}
"""What takes the place of each line ``@part@``."""


def written() -> dict[Path, str]:
    """Return the text of every generated page, by its path."""
    sources = sorted(DOCS.glob("**/*.md.in"))
    pages = {one.with_suffix(""): _page(one.read_text()) for one in sources}
    made = {
        AGENT_TOML: agent_toml(),
        CLOUD_TOML: cloud_toml(),
        opcodes.PLACE: opcodes.lines(),
    }
    return pages | {path: "\n".join(lines) + "\n" for path, lines in made.items()}


def agent_toml() -> Lines:
    """Yield the file of the agent's settings, each with its meaning and default."""
    yield "# How the agent of this node runs. A line that is commented out shows the"
    yield "# default. After a change: systemctl restart moorage-node; guests go on."
    yield from _settings(Settings)


def cloud_toml() -> Lines:
    """Yield the file of the cloud's settings, each with its meaning and default."""
    yield "# How the cloud runs. A line that is commented out shows the default. After"
    yield "# a change: systemctl restart moorage-cloud moorage-cloud-worker."
    yield from _settings(Conf)


def _settings(kind: type[msgspec.Struct]) -> Lines:
    told = attributes(kind)
    for one in msgspec.structs.fields(kind):
        yield ""
        text = told[one.name].replace("`", "")
        yield from (f"# {line}" for line in wrap(text, 86, break_on_hyphens=False))
        yield f"# {one.name} = {_toml(_default(one))}"


def _default(field: msgspec.structs.FieldInfo) -> object:
    made = field.default_factory
    return field.default if made is msgspec.NODEFAULT else made()


def _toml(value: object) -> str:
    plain = msgspec.to_builtins(value)
    if not isinstance(plain, dict):
        return json.dumps(plain)
    return f"{{ {', '.join(f'{name} = {_toml(one)}' for name, one in plain.items())} }}"


def _page(source: str) -> str:
    def made(found: re.Match[str]) -> str:
        return "\n".join(PARTS[found[1]]()).rstrip("\n")

    text = re.sub(r"^@(\w+)@$", made, source, flags=re.MULTILINE)
    return f"{NOTE}\n{text}"


def stale() -> list[str]:
    """Return the names of the pages that are not what the code says now."""
    return [
        path.name
        for path, text in written().items()
        if not path.exists() or path.read_text() != text
    ]


def main() -> int:
    """Write the pages, or say which are stale."""
    parser = argparse.ArgumentParser(description="Write the generated reference.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    if parser.parse_args().check:
        found = stale()
        sys.stderr.writelines(f"{name} is stale\n" for name in found)
        return 1 if found else 0
    # First what options say: the pages tell it.
    opcodes.PLACE.write_text("\n".join(opcodes.lines()) + "\n")
    for path, text in written().items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
