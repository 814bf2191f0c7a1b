# SPDX-License-Identifier: BSD-2-Clause

"""Write the generated pages of the docs from what the code declares.

A page is ``NAME.md.in`` in the docs, with a part that is made here in place of each
line ``@part@``. ``python scripts/docs/generate.py`` writes the pages; with ``--check``
it only says which are stale.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import checks
import commands
import library
import opcodes
import operations
import resources
import settings
import tools
import verbs
from compared import comparison, counts
from declared import Lines, code, fields, table
from floors import drawing

import storage
from moorage import errors
from moorage.api.rapi.limits import Limits
from moorage.cli import options
from moorage.cli.htools import declared
from moorage.daemons.agent import Settings
from moorage.daemons.rapi_settings import Settings as DoorSettings
from moorage.jobs.words import about

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
NOTE = "<!-- Written by scripts/docs/generate.py: change the code or the .md.in. -->"


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


def decisions() -> Lines:
    """Yield a row a decision: its number, and its title as a link."""
    rows = []
    for page in sorted((DOCS / "adr").glob("[0-9]*.md")):
        number, title = page.read_text().splitlines()[0].lstrip("# ").split(": ", 1)
        rows.append([number, f"[{title}]({page.name})"])
    yield from table(("number", "decision"), rows)


PARTS: dict[str, Callable[[], Lines]] = {
    "agent": verbs.agent,
    "about_options": lambda: commands.options_of(declared.ASKED),
    "asking_options": lambda: commands.options_of(options.ASKING),
    "balancing_options": lambda: commands.options_of(declared.BALANCING),
    "checks_by_object": checks.by_object,
    "checks_of_configuration": checks.of_configuration,
    "checks_unused": checks.unused,
    "checks_with_codes": checks.codes,
    "commands": commands.commands,
    "common": operations.common,
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
    "job_options": lambda: commands.options_of(options.JOB),
    "metrics": resources.metrics,
    "opcodes": operations.operations,
    "programs": commands.programs,
    "rapi_differences": tools.differences,
    "rapi_limits": lambda: fields(Limits),
    "rapi_resources": resources.resources,
    "rapi_roles": resources.roles,
    "rapi_settings": lambda: fields(DoorSettings),
    "results": operations.result_types,
    "scripts": storage.scripts,
    "search_path": storage.search_path,
    "source_options": lambda: commands.options_of(declared.SOURCES),
    "settings": lambda: fields(Settings),
    "templates": storage.templates,
    "tools_left_out": tools.left_out,
    "variables": storage.variables,
}
"""What takes the place of each line ``@part@``."""


def written() -> dict[Path, str]:
    """Return the text of every generated page, by its path."""
    sources = sorted(DOCS.glob("**/*.md.in"))
    pages = {one.with_suffix(""): _page(one.read_text()) for one in sources}
    made = {
        settings.AGENT_TOML: settings.agent_toml(),
        settings.CLOUD_TOML: settings.cloud_toml(),
        opcodes.PLACE: opcodes.lines(),
    }
    return pages | {path: "\n".join(lines) + "\n" for path, lines in made.items()}


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
