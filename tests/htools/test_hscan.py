# SPDX-License-Identifier: BSD-2-Clause
"""hscan: what a cluster answers becomes a file that every program reads."""

import json
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "parity"))

import hscan as parity
import master

from moorage.cli.htools import hscan
from moorage.htools import sample
from moorage.htools.formats import text
from moorage.node.certificates import tls

FLEET = sample.cluster(3, sample.Shape(kind="mixed", nodes=5, oddity=0.0))
ADDRESS = "127.83.4.1"


@pytest.mark.oracle
@pytest.mark.skipif(
    not Path("/usr/bin/hscan").exists(), reason="ganeti-htools is not installed"
)
@pytest.mark.parametrize("seed", range(1, 40))
def test_hscan_writes_the_same(seed, tmp_path):
    words, why = parity.differ(seed, tmp_path)
    assert why == "", words


def is_written(path):
    """Say whether a file holds the cluster that was asked."""
    found = text.parse(path.read_text())
    assert [node.name for node in found.nodes] == [node.name for node in FLEET.nodes]
    places = [(inst.primary, inst.secondary, inst.mem) for inst in FLEET.instances]
    return places == [(i.primary, i.secondary, i.mem) for i in found.instances]


@pytest.fixture
def server(tmp_path):
    """A RAPI server of a cluster, with a certificate of its own."""
    paths = {
        "/2/groups?bulk=1": "groups",
        "/2/nodes?bulk=1": "nodes",
        "/2/instances?bulk=1": "instances",
        "/2/info": "info",
    }
    answers = parity.answers(FLEET)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            data = json.dumps(answers[paths[self.path]]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_args):
            """Say nothing."""

    key = tls.new_key()
    (tmp_path / "key").write_bytes(tls.key_pem(key))
    (tmp_path / "cert").write_bytes(tls.pem(tls.self_signed(key, "rapi")))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    with HTTPServer((ADDRESS, 0), Handler) as made:
        made.socket = context.wrap_socket(made.socket, server_side=True)
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield f"{ADDRESS}:{made.server_port}"
        made.shutdown()
        thread.join()


def test_a_cluster_is_read_over_https(server, tmp_path, capsys):
    assert hscan.main(["-d", str(tmp_path), server]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["Name", "Nodes", "Inst"]
    assert lines[1].split()[:3] == [server, "5", "20"]
    assert is_written(tmp_path / f"{server}.data")


def test_slashes_in_a_name_become_underscores(server, tmp_path):
    assert hscan.main(["-d", str(tmp_path), "--no-headers", f"https://{server}"]) == 0
    assert is_written(tmp_path / f"https:__{server}.data")


def test_the_master_of_this_machine_is_asked_when_nobody_is_named(tmp_path, capsys):
    with master.Master(tmp_path / "socket", FLEET) as there:
        assert hscan.main([f"-L{there.path}", "-d", str(tmp_path), "-pname"]) == 0
    said = capsys.readouterr().out
    assert "LOCAL     5    20 " in said
    assert said.endswith(" node004\n")
    assert is_written(tmp_path / "LOCAL.data")


def test_one_cluster_that_fails_does_not_stop_the_others(tmp_path, capsys):
    good = parity.write(tmp_path / "good", FLEET)
    missing = f"file://{tmp_path}/none"
    assert hscan.main(["-d", str(tmp_path), missing, good]) == 2
    said = capsys.readouterr()
    assert f"\nError for {missing}: failed to load data. Details:\ncannot" in said.out
    assert is_written(tmp_path / (good.replace("/", "_") + ".data"))
    assert said.err == ""


@pytest.mark.parametrize("name", ["groups", "nodes", "instances", "info"])
@pytest.mark.parametrize(
    "noise", [b"", b"[", b"\xff", b"7", b"null", b"[[]]", b'{"a":1}']
)
def test_noise_is_one_sentence(name, noise, tmp_path, capsys):
    cluster = parity.write(tmp_path / "bad", FLEET)
    (tmp_path / "bad" / f"{name}.json").write_bytes(noise)
    assert hscan.main(["-d", str(tmp_path), "--no-headers", cluster]) == 2
    said = capsys.readouterr()
    _, heading, reason = said.out.splitlines()
    assert heading.endswith("failed to load data. Details:")
    assert reason
    assert said.err == ""


def test_nobody_listens(tmp_path, capsys):
    words = ["-d", str(tmp_path), "--no-headers"]
    assert hscan.main([*words, f"{ADDRESS}:1"]) == 2
    assert "no answer from" in capsys.readouterr().out
    assert hscan.main([*words, f"-L{tmp_path}/none"]) == 2
    assert "no master listens on" in capsys.readouterr().out


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path, capsys):
    cluster = parity.write(tmp_path / "good", FLEET)
    assert hscan.main(["-d", str(tmp_path / "none"), cluster]) == 1
    assert capsys.readouterr().err.startswith("Error: cannot write ")
