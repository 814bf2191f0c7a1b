# SPDX-License-Identifier: BSD-2-Clause
"""Bad input of every kind, for every program: one sentence, exit status 1."""

import json
import os
import re
import subprocess
import sys
import threading
from itertools import product
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.cli.htools import files
from moorage.errors import BadInput, NotFound
from moorage.htools import sample
from moorage.htools.formats import iallocator, mond, rapi, text
from moorage.htools.formats.loads import parse_loads

sys.path.insert(0, str(Path(__file__).parent / "parity"))

import hail as hail_messages
import hscan as rapi_answers
import loads
import mutants
from saying import PLACE, fleet, run, sentence

from support.sampling import EVERY_OTHER, sampled

OTHERWISE = (  # what is wrong with a cluster, not with the words that describe it
    "Aborting.",
    "Cannot find",
    "Cannot create node graph",
    "Found more than one master",
    "No master node",
    "Not all required data",
    "Not enough capacity",
    "failure during allocation",
    "null list of disk templates",
    "more than one storage unit",
)


def written(path, source):
    path.write_bytes(source.encode("utf-8", "surrogatepass"))
    return path


# -- files with something wrong in them --------------------------------------------


TEXT = {
    "hbal": ["-C", "-p", "--print-instances", "-l", "3"],
    "hcheck": [],
    "hinfo": ["-p", "-vvv", "--print-instances"],
    "hroller": ["-f", "--print-moves"],
    "hspace": ["-l", "2", "--no-capacity-checks", "--tiered-alloc=4g,2g,2"],
    "hsqueeze": ["-C"],
}


def damaged_text(draw, folder):
    source = mutants.of_lines(draw, text.dump(fleet(draw)))
    program = draw.choice(list(TEXT))
    return program, ["-t", written(folder / "f", source), *TEXT[program]]


def damaged_numbers(draw, folder):
    source = mutants.of_numbers(draw, text.dump(fleet(draw)))
    program = draw.choice(list(TEXT))
    return program, ["-t", written(folder / "f", source), *TEXT[program]]


def damaged_message(draw, folder):
    rows = fleet(draw)
    asked = hail_messages.request(draw, rows)
    message = hail_messages.message(rows, asked, drained=False)
    path = written(folder / "f", mutants.of_json(draw, message))
    program = draw.choice(("hail", "hail", "hbal", "hcheck", "hinfo", "hroller"))
    if program == "hail":
        return program, [path, *draw.choice(([], ["--explain"], ["-p"]))]
    return program, ["-I", path]


def damaged_answers(draw, folder):
    answers = rapi_answers.answers(fleet(draw))
    bad = draw.choice(list(answers))
    for name, value in answers.items():
        source = mutants.of_json(draw, value) if name == bad else json.dumps(value)
        written(folder / f"{name}.json", source)
    return draw.choice(("hbal", "hcheck", "hinfo")), ["-m", f"file://{folder}"]


def damaged_loads(draw, folder):
    rows = fleet(draw)
    path = loads.dynamic(draw, rows, folder)
    written(path, mutants.of_lines(draw, path.read_text()))
    data = written(folder / "f", text.dump(rows))
    words = ["-U", path, "-t", data]
    return draw.choice(("hbal", "hcheck")), words


def damaged_reports(draw, folder):
    rows = fleet(draw)
    words = loads.measured(draw, rows, folder)
    path = folder / "mond.json"
    written(path, mutants.of_json(draw, json.loads(path.read_text())))
    return "hbal", ["-t", written(folder / "f", text.dump(rows)), *words]


DAMAGED = (
    damaged_text,
    damaged_numbers,
    damaged_message,
    damaged_answers,
    damaged_loads,
    damaged_reports,
)


@pytest.mark.parametrize("made", DAMAGED)
@pytest.mark.parametrize("part", range(4))
def test_damaged_input_is_fine_or_one_sentence(made, part, tmp_path, capsys):
    for seed in range(part * 25, part * 25 + 25):
        draw = Random(seed)  # noqa: S311 - repeatable, not secret
        folder = tmp_path / str(seed)
        folder.mkdir()
        program, words = made(draw, folder)
        why = sentence(capsys, run(program, *words))
        known = why.startswith(OTHERWISE) or any(word in why for word in OTHERWISE)
        assert not why or known or PLACE.search(why), (seed, why)


@pytest.mark.slow
@pytest.mark.parametrize("made", DAMAGED)
def test_much_damaged_input_is_fine_or_one_sentence(made, tmp_path, capsys):
    for part in range(100, 140):
        (tmp_path / str(part)).mkdir()
        test_damaged_input_is_fine_or_one_sentence(
            made, part, tmp_path / str(part), capsys
        )


@given(st.binary(max_size=200))
@settings(max_examples=150, deadline=None)
def test_bytes_are_no_cluster(noise):
    readers = (_text, iallocator.parse, _one_answer, _reports)
    for read in readers:
        with pytest.raises(BadInput, match=r"^f: line \d+, column \d+: ") as caught:
            read(files.decoded(noise, "f"), "f")
        assert caught.value.message.isprintable()


def _text(source, name):
    text.parse("|" + source, name)  # empty lines alone are an empty cluster


def _one_answer(source, name):
    rapi.parse(
        dict.fromkeys(("groups", "nodes", "instances", "info"), source + "["),
        dict.fromkeys(("groups", "nodes", "instances", "info"), name),
    )


def _reports(source, name):
    mond.parse(source + "}", name, mond.NODES)


@given(st.text(max_size=60))
@settings(max_examples=150, deadline=None)
def test_loads_are_read_or_refused_with_their_place(noise):
    try:
        found = parse_loads(noise, "f")
    except BadInput as error:
        found = None
        said = error.message
        assert PLACE.search(said)
        assert said.isprintable()
    assert all(len(load) == 4 for _, load in found or ())


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("[" * 100_000, "line 1, column 201: is nested too deep"),
        ('{"a": ' * 100_000, "line 1, column 1201: is nested too deep"),
        ('{"x": "\\"a\\": 1",\n "a": NaN}', "line 2, column 7: NaN is not a number"),
        ('{"a": -Infinity}', "line 1, column 7: -Infinity is not a number"),
        ("[1,\n" + "9" * 5000 + "]", "line 2, column 1: a number of 5000 digits"),
        ("[" + "[]," * 2_100_000, "holds more than 2000000 lists and objects"),
        ("\ufeff{}", "line 1, column 1: Unexpected UTF-8 BOM"),
    ],
)
def test_json_goes_wrong_at_a_place(source, says):
    with pytest.raises(BadInput, match=re.escape(says)):
        iallocator.parse(source, "f")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("g|u|preferred|\r\n\r\n\r\n\r\n", "line 1, column 4: a control character"),
        ("g|u|preferred|\0\n\n\n\n", "line 1, column 4: a control character"),
        ("", "line 1, column 1: Invalid format"),
    ],
)
def test_text_goes_wrong_at_a_place(source, says):
    with pytest.raises(BadInput, match=re.escape(says)):
        text.parse(source, "f")


# -- files that are no files -------------------------------------------------------

SOURCES = [
    *((program, ["-t", "{}"]) for program in TEXT),
    *((program, ["-I", "{}"]) for program in ("hbal", "hcheck", "hinfo", "hroller")),
    *[("hspace", ["-I", "{}"]), ("hail", ["{}"]), ("hail", ["-t", "{}", "{good}"])],
    *[("hbal", ["-t", "{good}", "-U", "{}"]), ("hcheck", ["-t", "{good}", "-U", "{}"])],
    *[("hbal", ["-t", "{good}", "--mond", "--mond-data", "{}"])],
    *[("hinfo", ["-t", "{good}", "--mond", "--mond-data", "{}"])],
]


@pytest.mark.parametrize(("program", "words"), SOURCES)
@pytest.mark.parametrize("what", ["missing", "folder", "loop", "binary"])
def test_what_is_no_text_file_is_one_sentence(program, words, what, tmp_path, capsys):
    rows = sample.cluster(1, sample.Shape(oddity=0.0))
    good = written(tmp_path / "good", text.dump(rows))
    if program == "hail":
        asked = hail_messages.request(Random(1), rows)  # noqa: S311
        message = hail_messages.message(rows, asked, drained=False)
        good = written(tmp_path / "message", json.dumps(message))
    path = tmp_path / "it"
    if what == "folder":
        path.mkdir()
    if what == "loop":
        path.symlink_to(path)
    if what == "binary":
        path.write_bytes(b"a|b\n\xff\0")
    words = [
        word.replace("{good}", str(good)).replace("{}", str(path)) for word in words
    ]
    why = sentence(capsys, run(program, *words))
    assert str(path) in why
    assert what != "binary" or "line 2, column 1: not UTF-8 text" in why


def test_an_endless_file_is_not_read_for_ever():
    with pytest.raises(BadInput, match=r"line 1, column .* is larger than 64 MiB"):
        files.read_text("/dev/zero")


def test_nobody_waits_for_a_fifo_that_nobody_writes_to(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PATIENCE", 0.05)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(NotFound, match=r"nobody writes to it \(waited 0.05 s\)"):
        files.read_text(str(tmp_path / "fifo"))


def test_what_comes_through_a_fifo_is_read_whole(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=("é" * 200_000,))
    writer.start()
    assert files.read_text(str(path)) == "é" * 200_000
    writer.join()


# -- words on the command line -----------------------------------------------------


@pytest.mark.parametrize(
    ("program", "words"),
    [
        *(("hbal", words) for words in (
            ["-l", "x"], ["-l", "1.5"], ["-e", "nan"], ["-e", "1e400"], ["-g", "inf"],
            ["--min-gain-limit=x"], ["--max-cpu=-2"], ["--max-cpu=nan"],
            ["--max-cpu=Infinity"], ["--min-disk", "7"], ["--min-disk=-1"],
            ["--static-kvm-node-memory=1e9"], ["-O", "nobody"], ["-G", "nowhere"],
            ["--select-instances=,"], ["--priority=soon"],
            ["--mond=maybe"], ["-X"], ["-l", "9" * 5000], ["more"],
        )),
        *(("hspace", words) for words in (
            ["--standard-alloc", "10x,1g,1"], ["--standard-alloc", "10g,1g"],
            ["--tiered-alloc", "10g,1g,1.5"], ["--spindle-use=x"],
            ["--machine-readable=maybe"], ["--disk-template=tape"],
            ["--standard-alloc", "9" * 15 + "t,1g,1"],
        )),
        ("hcheck", ["--survive=xml"]),
        ("hsqueeze", ["--minimal-resources=-1"]),
    ],
)  # fmt: skip
def test_bad_words_are_one_sentence(program, words, tmp_path, capsys):
    shape = sample.Shape(nodes=3, instances=5, oddity=0.0)
    data = written(tmp_path / "good", text.dump(sample.cluster(1, shape)))
    assert sentence(capsys, run(program, "-t", data, *words))


@pytest.mark.parametrize(
    "spec",
    [
        *["", ",", "p,1", "x,1,1,1,1", "p,x,1,1,1", "p,-1,1,1,1", "p,1,1q,1,1"],
        *[
            "p,1,999999999999999t,1,1",
            "p,999999,1,1,1",
            "p,1,1,1,1,1,1,1",
            "p,1,nan,1,1",
        ],
        *["p,٣,1,1,1", "p,1,1,1,1\n"],
    ],
)
def test_bad_simulations_are_one_sentence(spec, capsys):
    assert sentence(capsys, run("hspace", "--simulate", spec))


HEAD = "g|u|preferred||\n\n" + "".join(
    f"node{at}|81920|512|70000|100000|90000|16|N|u\n" for at in range(9)
)
LARGE = {
    "lines": (HEAD + "\n", "inst{:07d}|512|10240|1|running|Y|node1||ext|tag:a\n"),
    "tags": (HEAD + "\n\n", "ab\n" * 20),
    "words": (HEAD + "\n", ",ab" * 20),
    "base64": ("", "QUJD" * 20),
    "lists": ("", "[[],{}," * 20),
    "numbers": ("", "[" + "1.5," * 20),
}
"""How a large file begins, and what comes again and again."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "kind", "size"),
    sampled(list(product(("-t", "-I"), LARGE, (60, 100))), EVERY_OTHER, "large"),
)
def test_a_hundred_megabytes_take_neither_all_memory_nor_all_day(
    option, kind, size, tmp_path
):
    path = tmp_path / "large"
    start, part = LARGE[kind]
    with path.open("w") as out:
        length, at = out.write(start), 0
        while length < size * 10**6:
            length += out.write(part.format(at) if kind == "lines" else part)
            at += 1
        out.write("|oops\n\n|\n" if kind != "lines" else "oops\n\n\n")
    is_refused(path, option)


@pytest.mark.slow
@pytest.mark.parametrize("option", ["-t", "-I"])
def test_a_hundred_megabytes_of_noise_are_refused(option, tmp_path):
    path = tmp_path / "noise"
    path.write_bytes(os.urandom(100_000_000))
    is_refused(path, option)
    path.write_bytes(b"\n" * 100_000_000)
    is_refused(path, option)


def is_refused(path, option):
    """Run a program with little memory; expect one sentence with a place."""
    module = f"'{sys.executable}' -m moorage.cli.htools.hinfo"
    limited = f"ulimit -v 2000000; exec {module} {option} '{path}'"
    done = subprocess.run(
        ["bash", "-c", limited],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1, done.stderr
    assert PLACE.search(done.stderr), done.stderr
    assert len(done.stderr.splitlines()) == 1
