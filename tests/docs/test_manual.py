# SPDX-License-Identifier: BSD-2-Clause
"""Manual pages and completion say what the programs declare."""

import shlex
import subprocess

import completion
import manual
import pytest

from moorage.cli.command import planners, programs


@pytest.mark.parametrize("program", [*programs(), *planners()], ids=lambda p: p.name)
def test_a_page_has_every_command_and_every_option(program):
    section = 1 if program in planners() else 8
    text = manual.pages()[f"{program.name}.{section}"].replace("\\-", "-")
    assert f'.TH {program.name.upper()} {section} ""' in text
    for command in program.commands:
        for name in command.names if command.name else ():
            assert name in text
        for option in command.options:
            assert all(flag in text for flag in option.flags)


def test_text_is_no_macro():
    assert manual._text("'quoted' -x") == "\\&'quoted' \\-x"
    for text in manual.pages().values():
        for line in text.splitlines():
            assert (
                not line.startswith(".") or line[1:3].isupper() or line[1:3] in "nffi"
            )


def completed(directory, *words):
    """Return what bash offers for the last one of some words."""
    directory.joinpath("moorage").write_text(completion.scripts()["moorage"])
    script = (
        f"PATH={directory}:$PATH; . {directory}/moorage; "
        f"COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; "
        "_moorage; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(
        ["bash", "-uc", script], check=True, capture_output=True, text=True
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("gnt-disk", "att"), {"attach"}),
        (("gnt-storage", "pool", "con"), {"connect"}),
        (("moorage", "up", "--hypervisor", ""), {"kvm", "fake", "sim"}),
        (("moorage", "master", "st"), {"start", "stop"}),
        (("gnt-instance", "add", "--disk-t"), {"--disk-template"}),
        (("hbal", "--print-inst"), {"--print-instances"}),
    ],
)
def test_bash_completes(tmp_path, words, offered):
    assert completed(tmp_path, *words) == offered


def test_bash_completes_the_names_of_objects(tmp_path):
    lister = tmp_path / "gnt-instance"
    lister.write_text('#!/bin/sh\n[ "$1" = list ] && printf "web1\\nweb2\\n"\n')
    lister.chmod(0o755)
    assert completed(tmp_path, "gnt-instance", "startup", "w") == {"web1", "web2"}


def test_every_program_is_completed_in_both_shells():
    for script in completion.scripts().values():
        for program in [*programs(), *planners()]:
            assert program.name in script
