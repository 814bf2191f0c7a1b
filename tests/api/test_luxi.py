# SPDX-License-Identifier: BSD-2-Clause
"""LUXI's framing, its errors on the wire, and the blocking client."""

import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api import luxi, luxi_messages
from moorage.errors import (
    BadInput,
    CommandFailed,
    Failed,
    MoorageError,
    NoCapacity,
    NoMaster,
    NotFound,
    Refused,
    Unreachable,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.slow
@given(st.lists(JSON), st.integers(1, 7))
def test_messages_survive_any_cut(results: list[object], width: int) -> None:
    stream = b"".join(luxi_messages.encode_result(result) for result in results)
    splitter = luxi.Splitter()
    pieces = [stream[i : i + width] for i in range(0, len(stream), width)]
    messages = [m for piece in pieces for m in splitter.feed(piece)]
    assert [luxi_messages.decode_answer(m) for m in messages] == results


@pytest.mark.slow
@given(st.text(), st.lists(JSON))
def test_a_request_comes_back(method: str, args: list[object]) -> None:
    (message,) = luxi.Splitter().feed(luxi_messages.encode_request(method, args))
    assert luxi_messages.decode_request(message) == (method, args)


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"args": []}', "'method'"),
        (b'{"method": "Query", "args": {}}', "'args'"),
        (b'{"method": "Query", "args": [], "version": 2160000}', "speaks LUXI 2160000"),
    ],
)
def test_bad_requests_are_refused(message: bytes, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        luxi_messages.decode_request(message)


def test_a_message_without_end_is_refused() -> None:
    with pytest.raises(BadInput, match="has no end"):
        luxi.Splitter(longest=10).feed(b"x" * 11)


def test_refusals_have_ganetis_shape_and_the_details() -> None:
    error = NoCapacity("no room", hint="gnt-storage info", free=12)
    name, args, details = luxi_messages.error_to_wire(error)
    assert (name, args) == ("OpPrereqError", ["no room", "insufficient_resources"])
    assert details["facts"] == {"free": 12}


@pytest.mark.parametrize(
    "error",
    [
        NoCapacity("no room", hint="h", free=12),
        CommandFailed("exit 3"),
        Unreachable("node2 is silent"),
        Refused("no"),
    ],
)
def test_errors_come_back_whole(error: MoorageError) -> None:
    back = luxi_messages.error_from_wire(luxi_messages.error_to_wire(error))
    assert type(back) is type(error)
    assert back.to_json() == error.to_json()


@pytest.mark.parametrize(
    ("wire", "kind", "message"),
    [
        (["OpPrereqError", ["gone", "unknown_entity"]], NotFound, "gone"),
        (["OpPrereqError", ["no"]], Refused, "no"),
        (["OpExecError", ["broke"]], Failed, "broke"),
        (["JobLost", []], Failed, "JobLost"),
        ("what?", Failed, "what?"),
        (None, Failed, "None"),
    ],
)
def test_whatever_comes_is_an_error(
    wire: object, kind: type[MoorageError], message: str
) -> None:
    back = luxi_messages.error_from_wire(wire)
    assert isinstance(back, kind)
    assert back.message == message


Script = Callable[[socket.socket], None]


@pytest.fixture
def path() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as directory:
        yield str(Path(directory) / "luxi.sock")


def serve(path: str, *scripts: Script) -> threading.Thread:
    """Answer one connection a script."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen()

    def answer() -> None:
        with listener:
            for script in scripts:
                link, _ = listener.accept()
                with link:
                    script(link)

    thread = threading.Thread(target=answer)
    thread.start()
    return thread


def says(answer: bytes) -> Script:
    def script(link: socket.socket) -> None:
        link.recv(65536)
        link.sendall(answer)

    return script


def test_call_returns_the_result(path: str) -> None:
    thread = serve(path, says(luxi_messages.encode_result([1, "a"])))
    with luxi.LuxiClient(path) as client:
        assert client.call("QueryConfigValues", ["x"]) == [1, "a"]
    thread.join()


def test_call_raises_what_the_master_raised(path: str) -> None:
    thread = serve(
        path, says(luxi_messages.encode_error(NotFound("no disk", hint="look")))
    )
    with luxi.LuxiClient(path) as client, pytest.raises(NotFound) as found:
        client.call("Query", "disk", [], None)
    assert found.value.hint == "look"
    thread.join()


def test_values_of_any_kind_reach_the_other_side(path: str) -> None:
    heard: list[bytes] = []

    def script(link: socket.socket) -> None:
        heard.append(link.recv(65536))
        link.sendall(luxi_messages.encode_result(7))

    thread = serve(path, script)
    op = {"OP_ID": "OP_DISK_ADD", "params": {"param1": "ä\x03"}}
    with luxi.LuxiClient(path) as client:
        assert client.submit_job([op]) == 7
    thread.join()
    assert luxi_messages.decode_request(heard[0][:-1]) == ("SubmitJob", [[op]])


def test_no_master_is_one_sentence_with_a_command(path: str) -> None:
    with pytest.raises(NoMaster, match="no master listens on") as found:
        luxi.LuxiClient(path).call("QueryClusterInfo")
    assert "moorage up" in found.value.hint
    assert isinstance(found.value, Refused)


def test_no_master_on_a_full_disk_is_told_as_that(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(path).with_name("state.sqlite").touch()
    monkeypatch.delenv("MOORAGE_DIR", raising=False)
    monkeypatch.setattr(luxi, "_LITTLE", 1 << 70)
    with pytest.raises(NoMaster, match=r"file system of .* is full") as found:
        luxi.LuxiClient(path).call("QueryClusterInfo")
    assert found.value.hint.startswith(f"make room in {Path(path).parent}")


def test_where_a_cluster_is_its_master_is_to_be_started(path: str) -> None:
    Path(path).with_name("state.sqlite").touch()
    with pytest.raises(NoMaster) as found:
        luxi.LuxiClient(path).call("QueryClusterInfo")
    assert found.value.hint == "moorage master start"


def test_a_master_that_hangs_up_is_unreachable(path: str) -> None:
    thread = serve(path, lambda link: link.recv(10) and None)
    with pytest.raises(Unreachable, match="broke"):
        luxi.LuxiClient(path).call("QueryClusterInfo")
    thread.join()


def test_a_silent_master_is_unreachable_and_its_late_answer_is_not_read(
    path: str,
) -> None:
    done = threading.Event()

    def silent(_link: socket.socket) -> None:
        done.wait(60)

    thread = serve(path, silent, says(luxi_messages.encode_result("second")))
    client = luxi.LuxiClient(path, timeout=0.2)
    with pytest.raises(Unreachable, match=r"no answer in 0\.2 s"):
        client.call("WaitForJobChange")
    done.set()
    client._timeout = 60
    with client:
        assert client.call("QueryClusterInfo") == "second"
    thread.join()


def test_query_pairs_status_and_value(path: str) -> None:
    fields = [{"name": "name", "title": "Disk", "kind": "text", "doc": ""}]
    answer = {"fields": fields, "data": [[[0, "a"]], [[3, None]]]}
    thread = serve(path, says(luxi_messages.encode_result(answer)))
    with luxi.LuxiClient(path) as client:
        assert client.query("disk", ["name"]) == (fields, [[(0, "a")], [(3, None)]])
    thread.join()


def test_who_reads_no_log_is_not_woken_by_it_again_and_again(path: str) -> None:
    """A job that has said something would be news at once, each time."""
    heard: list[bytes] = []

    def script(link: socket.socket) -> None:
        for _ in range(2):
            heard.append(link.recv(65536))
            link.sendall(luxi_messages.encode_result(luxi.NOCHANGE))

    thread = serve(path, script)
    with luxi.LuxiClient(path) as client:
        for serial in (None, 3):
            client.wait_for_job_change(7, ["status"], (["running"], serial), 9.0)
    thread.join()
    asked = [luxi_messages.decode_request(one[:-1])[1][3] for one in heard]
    assert asked[0] > 10**6
    assert asked[1] == 3
