# SPDX-License-Identifier: BSD-2-Clause
"""Command lines as scripts write them for Ganeti's tools, and what is no option."""

import re
import subprocess
from importlib import import_module

import pytest

from moorage.htools import sample
from moorage.htools.formats import text

PROGRAMS = (
    "hail", "hbal", "hcheck", "hinfo", "hroller", "hscan", "hspace", "hsqueeze",
)  # fmt: skip
OURS = {
    "--explain", "--html", "--lookahead", "--compact", "--cost", "--survive",
    "--no-capacity-checks", "--static-kvm-node-memory",
}  # fmt: skip
"""Options that one of Ganeti's programs, or all of them, lack."""


@pytest.fixture
def cluster(tmp_path):
    path = tmp_path / "cluster.data"
    shape = sample.Shape(kind="drbd", nodes=4, instances=10, oddity=0.0)
    path.write_text(text.dump(sample.cluster(1, shape)))
    return path


def run(program, *words):
    """Run a program; return its exit status."""
    try:
        return import_module(f"moorage.cli.htools.{program}").main(
            [str(w) for w in words]
        )
    except SystemExit as end:
        return end.code


def said(capsys, program, *words):
    """Return the exit status and what was printed."""
    status = run(program, *words)
    told = capsys.readouterr()
    return status, told.out, told.err


@pytest.mark.parametrize(
    ("short", "full"),
    [
        (["-t{}", "--no-cap", "-qC"], ["-t", "{}", "--no-capacity-checks", "-q", "-C"]),
        (["--text={}", "--min-gain=1"], ["--text-data", "{}", "--min-gain", "1"]),
        (["--te", "{}", "--max-l", "-1"], ["-t", "{}", "--max-length=-1"]),
        (["-vl2", "-t", "{}"], ["-l", "2", "-v", "-t", "{}"]),
        (
            ["-t", "{}", "-pname,pcnt", "--print-i"],
            ["-t", "{}", "--print-nodes=name,pcnt", "--print-instances"],
        ),
        (["-t", "{}", "--print-c"], ["-t", "{}", "--print-commands"]),
    ],
)
def test_short_forms_mean_what_the_full_ones_do(short, full, cluster, capsys):
    short, full = ([word.format(cluster) for word in words] for words in (short, full))
    assert said(capsys, "hbal", *short) == said(capsys, "hbal", *full)


def test_a_joined_value_is_a_file_name(cluster, tmp_path, capsys):
    script = tmp_path / "plan.sh"
    assert run("hbal", f"-qt{cluster}", "--no-capacity-checks", f"-vC{script}") == 0
    assert script.read_text().startswith("#!/bin/sh")
    assert "have been written to file" in capsys.readouterr().out


def test_hspace_takes_the_prefixes_that_scripts_use(capsys):
    words = "--simu", "p,3,100g,8g,4", "--accept-existing", "--machine", "-q"
    status, out, _ = said(capsys, "hspace", *words)
    assert status == 0
    assert out.endswith("HTS_OK=1\n")


def test_our_own_options_take_no_abbreviation_from_ganetis(cluster, capsys):
    # --l is --luxi for Ganeti's hbal, and ours has --lookahead.
    status, _, err = said(capsys, "hbal", "--l=/no/such/socket")
    assert status == 1
    assert "/no/such/socket" in err
    assert run("hbal", "-t", cluster, "--look") == 0


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--nosuch"], "unrecognized option `--nosuch'"),
        (["-Z"], "unrecognized option `-Z'"),
        (["-vZ"], "unrecognized option `-Z'"),
        (["--verbose=3"], "option `--verbose' doesn't allow an argument"),
        (["--static-kvm-node-memory"], "option `--static-kvm-node-memory' requires an"),
    ],
)
def test_what_is_no_option_ends_with_status_two(program, words, why, capsys):
    status, out, err = said(capsys, program, *words)
    assert status == 2
    assert out == ""
    assert err.startswith(f"Command line error: {why}")
    assert "--version" in err


def test_an_ambiguous_abbreviation_names_what_it_could_be(capsys):
    status, _, err = said(capsys, "hbal", "--max")
    assert status == 2
    assert err.startswith("Command line error: option `--max' is ambiguous; could be")
    assert "\n  --max-cpu\n  --max-length\n" in err


@pytest.mark.parametrize("program", ["hbal", "hcheck", "hinfo", "hroller", "hspace"])
def test_arguments_are_refused_in_ganetis_words(program, cluster, capsys):
    status, _, err = said(capsys, program, "-t", cluster, "extra")
    assert (status, err) == (1, "Error: This program doesn't take any arguments.\n")


def test_without_a_cluster_the_sentence_is_ganetis(capsys):
    status, _, err = said(capsys, "hbal")
    assert status == 1
    assert err.startswith(
        "Error: failed to load data, aborting: No backend selected! Exiting.\n"
    )


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_option_has_words(program, capsys):
    assert run(program, "--help") == 0
    out = capsys.readouterr().out
    options = out[out.index("\nOptions:") :]
    for line in re.split(r"\n  (?=-)", options)[1:]:
        head, *words = line.replace("\n", " ").split("  ", 1)
        assert words, head
        assert words[0].strip(), head
    assert f"\nExamples:\n  {program} " in out


@pytest.mark.parametrize("program", PROGRAMS)
def test_completion_lists_every_option(program, capsys):
    assert run(program, "--help-completion") == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(re.fullmatch(r"(-\S+|host|file) \S+( \S+)?", line) for line in lines)
    assert "-h,--help none" in lines
    assert "-V,--version none" in lines


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS)
def test_completion_is_ganetis_and_more(program, capsys):
    place = (
        "/usr/lib/ganeti/iallocators/hail"
        if program == "hail"
        else f"/usr/bin/{program}"
    )
    done = subprocess.run(
        [place, "--help-completion"], capture_output=True, text=True, check=True
    )
    run(program, "--help-completion")
    mine = dict(line.split(" ", 1) for line in capsys.readouterr().out.splitlines())
    other = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    other.pop("--disk-template", None)  # ours takes drbd8, too
    assert other.items() <= mine.items()
    more = {name.split(",")[-1] for name in mine.keys() - other.keys()}
    assert more <= OURS | {"--disk-template"}


@pytest.mark.parametrize("words", [["-l", "0"], ["-l0", "--machine"]])
def test_room_for_no_instance_is_an_answer(words, capsys):
    status, out, err = said(capsys, "hspace", "--simu", "p,3,100g,8g,4", *words)
    assert (status, err) == (0, "")
    if len(words) == 1:
        assert "HTS_ALLOC_INSTANCES=0\nHTS_ALLOC_FAIL_REASON=FAILMEM\n" in out
    else:
        assert "  -   0 instances allocated" in out or "HTS_OK=1" in out
