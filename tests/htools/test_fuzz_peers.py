# SPDX-License-Identifier: BSD-2-Clause
"""Servers and masters that answer nonsense: one sentence, exit status 1."""

import json
import sys
import threading
from pathlib import Path
from random import Random

import pytest

from moorage.cli.htools import remote
from moorage.errors import BadInput, MoorageError, Unreachable
from moorage.htools.formats import luxi

sys.path.insert(0, str(Path(__file__).parent / "parity"))

import mutants
import servers
from master import Master
from saying import fleet, run, sentence

HOST = "127.83.6.1"


NONSENSE = [
    b"",
    b"\0" * 100 + b"\r\n",
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"HTTP/1.1 404 Not Found\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n[]",
    b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n[",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
    b"HTTP/1.1 200 OK\r\n\r\n\xff\xfe",
    b"HTTP/1.1 200 OK\r\n\r\n[[]]",
    b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000,
    b"HTTP/1.1 200 OK\r\n\r\n[{}]",
    b"HTTP/1.1 999 \x1b[31m\r\n\r\n",
]


@pytest.mark.parametrize("program", ["hbal", "hcheck", "hinfo", "hroller", "hspace"])
@pytest.mark.parametrize("answer", NONSENSE)
def test_a_web_server_that_makes_no_sense_is_one_sentence(program, answer, capsys):
    with servers.http(lambda _request: answer, HOST) as there:
        assert sentence(capsys, run(program, "-m", there.address))


@pytest.mark.parametrize("answer", NONSENSE)
def test_hscan_goes_on_after_nonsense(answer, tmp_path, capsys):
    with servers.http(lambda _request: answer, HOST) as there:
        words = ["--no-headers", "-d", tmp_path, there.address, there.address]
        assert run("hscan", *words) == 2
    said = capsys.readouterr()
    assert said.out.count("failed to load data") == 2
    assert len(said.out.splitlines()) == 6
    assert said.err == ""


def test_an_answer_without_an_end_is_cut_off():
    over = threading.Event()

    def late(_request):
        over.wait(10)
        return b"HTTP"

    with servers.http(late, HOST) as there:
        with pytest.raises(Unreachable, match=r"(in 0.05 s|timed out)$"):
            remote.fetch(there.address, timeout=0.05)
        over.set()


def test_an_answer_that_trickles_in_is_cut_off():
    over = threading.Event()

    def trickle(_request):
        yield b"HTTP/1.1 200 OK\r\n\r\n"
        while not over.wait(0.01):
            yield b"x"

    with servers.http(trickle, HOST) as there:
        with pytest.raises(Unreachable, match=r"no answer from .* in 0.1 s$"):
            remote.fetch(there.address, timeout=0.1)
        over.set()


def test_an_endless_answer_is_cut_off():
    body = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 2**22
    with (
        servers.http(lambda _request: body, HOST) as there,
        pytest.raises(BadInput, match="the answer is larger than"),
    ):
        remote.fetch(there.address, longest=2**20)


MUTTERING = [
    b"",
    b"half",
    b"\x03",
    b"nonsense\x03",
    b"\xff\x03",
    b"[]\x03",
    b"null\x03",
    b'{"success": true}\x03',
    b'{"success": true, "result": null}\x03',
    b'{"success": true, "result": null, "version": 1}\x03',
    b'{"success": false, "result": 7}\x03',
    b'{"success": false, "result": ["OpPrereqError", ["two\\nlines", "x"]]}\x03',
    b'{"success": false, "result": ["X", [], {"facts": 7}]}\x03',
    b'{"success": false, "result": ["X", [], {"facts": {"message": 1}}]}\x03',
    b'{"success": false, "result": "' + b"x" * 10_000 + b'"}\x03',
    b'{"success": true, "result": {"data": 3}}\x03',
    b'{"success": true, "result": {"data": [[[0, 1]]]}}\x03',
    b'{"success": true, "result": ' + b"[" * 100_000 + b"\x03",
]


@pytest.mark.parametrize("program", ["hbal", "hcheck", "hinfo", "hroller", "hsqueeze"])
@pytest.mark.parametrize("answer", MUTTERING)
def test_a_master_that_makes_no_sense_is_one_sentence(
    program, answer, tmp_path, capsys
):
    path = str(tmp_path / "socket")

    def reply(_request):
        # Ends the connection after the first answer that has no end.
        return answer if answer.endswith(servers.END) else b""

    with servers.luxi(path, reply):
        assert sentence(capsys, run(program, f"-L{path}"))


@pytest.mark.parametrize("seed", range(60))
def test_a_master_with_one_wrong_value_is_one_sentence(seed, tmp_path, capsys):
    draw = Random(seed)  # noqa: S311 - repeatable, not secret
    path = str(tmp_path / "socket")
    told = Master(tmp_path / "unused", fleet(draw))
    told.socket.close()
    right = {name: told._answer(*call) for name, call in luxi.CALLS.items()}
    bad = draw.choice(list(right))
    wrong = mutants.of_json(draw, right[bad])

    def reply(request):
        method, what = servers.method(request)
        name = "info" if method == "QueryClusterInfo" else f"{what}s"
        return servers.result(wrong if name == bad else json.dumps(right[name]))

    with servers.luxi(path, reply):
        sentence(capsys, run("hinfo", f"-L{path}"))


def test_a_wrong_value_of_a_master_is_named_by_its_path(tmp_path):
    told = Master(tmp_path / "unused", fleet(Random(1)))  # noqa: S311
    told.socket.close()
    answers = {name: told._answer(*call) for name, call in luxi.CALLS.items()}
    answers["nodes"]["data"][2][1] = [0, "much"]
    with pytest.raises(BadInput, match=r"^nodes: 2\.mtotal is not a number$"):
        luxi.parse(answers)
    answers["nodes"]["data"][2] = [[0, 1]]
    with pytest.raises(BadInput, match=r"^nodes: data.2 has 1 fields instead of 19$"):
        luxi.parse(answers)


def test_nobody_waits_for_a_silent_master(tmp_path):
    path = str(tmp_path / "socket")

    over = threading.Event()

    def late(_request):
        over.wait(10)
        return b""

    with servers.luxi(path, late):
        with pytest.raises(MoorageError, match=r"in 0.05 s"):
            remote.luxi(path, timeout=0.05)
        over.set()
