# SPDX-License-Identifier: BSD-2-Clause
"""A master runs commands and writes files where root of a node allows it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from moorage.errors import BadInput, Failed, Forbidden
from moorage.node.extensions.orders import COMMANDS, OUTPUT, PLACES, Orders
from moorage.protocol.orders import LARGEST


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    (tmp_path / "allowed" / "below").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "ganeti").mkdir()
    return Orders(tmp_path / "ganeti")


def lists(orders: Orders, *places: Path | str) -> None:
    text = "\n".join(map(str, places))
    (orders.directory / PLACES).write_text(f"# where files may be written\n\n{text}\n")


async def test_a_command_is_run_where_root_says_yes(orders: Orders) -> None:
    (orders.directory / COMMANDS).write_text("# any\nyes\n")
    said = await orders.run("echo a | tr a b; echo c >&2; exit 3")
    assert (said.output, said.code) == ("b\nc\n", 3)
    said = await orders.run("head -c 100000 /dev/zero | tr '\\0' x; echo end")
    assert (len(said.output) - OUTPUT, said.output[-4:]) == (28, "end\n")
    for text in ("", " ", "echo \0", "x" * 20_000):
        with pytest.raises(BadInput):
            await orders.run(text)


@pytest.mark.parametrize("said", [None, "", "no", "#yes", "yes please", "yes\nno"])
async def test_no_command_is_run_elsewhere(
    orders: Orders, tmp_path: Path, said: str | None
) -> None:
    if said is not None:
        (orders.directory / COMMANDS).write_text(said)
    lists(orders, tmp_path)
    with pytest.raises(Forbidden, match="lets no master run commands") as caught:
        await orders.run(f"touch {tmp_path}/mark")
    assert f"echo yes > {orders.directory / COMMANDS}" in str(caught.value.hint)
    assert not (tmp_path / "mark").exists()


async def test_the_word_of_somebody_else_is_not_believed(
    orders: Orders, tmp_path: Path
) -> None:
    for name, text in ((COMMANDS, "yes\n"), (PLACES, f"{tmp_path}/allowed\n")):
        (orders.directory / name).write_text(text)
        (orders.directory / name).chmod(0o666)
    with pytest.raises(Failed, match="is not believed"):
        await orders.run(f"touch {tmp_path}/mark")
    with pytest.raises(Failed, match="is not believed"):
        orders.put(f"{tmp_path}/allowed/x", b"x", 0o600)
    assert not (tmp_path / "mark").exists()
    assert not (tmp_path / "allowed/x").exists()


def test_a_file_is_written_into_a_listed_place(orders: Orders, tmp_path: Path) -> None:
    lists(orders, tmp_path / "allowed", tmp_path / "other/one")
    for path in ("allowed/a", "allowed/below/b", "other/one"):
        for data in (b"first", b"second"):
            orders.put(str(tmp_path / path), data, 0o4754)
            assert (tmp_path / path).read_bytes() == data
        assert (tmp_path / path).stat().st_mode & 0o7777 == 0o754
    assert sorted(one.name for one in (tmp_path / "allowed").iterdir()) == [
        "a",
        "below",
    ]


@pytest.mark.parametrize(
    "path",
    [
        *("other/x", "allowed/../other/x", "allowed/link/x", "allowedx", "allowed//x"),
        *("allowed", "allowed/", "ganeti/cluster-command", "allowed/own/hook", ""),
    ],
)
def test_nothing_is_written_elsewhere(
    orders: Orders, tmp_path: Path, path: str
) -> None:
    lists(orders, tmp_path / "allowed", orders.directory, "/", "relative")
    (tmp_path / "allowed/link").symlink_to(tmp_path / "other")
    (tmp_path / "allowed/own").symlink_to(orders.directory)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises((Forbidden, BadInput, Failed)):
        orders.put(f"{tmp_path}/{path}" if path else "", b"x", 0o600)
    with pytest.raises((Forbidden, BadInput)):
        orders.put(f"/{path}x", b"x", 0o600)
    assert sorted(tmp_path.rglob("*")) == before


def _others_write(place: Path) -> None:
    place.chmod(0o777)


def _nobody_made(place: Path) -> None:
    (place / "x").mkdir()


@pytest.mark.parametrize("spoil", [_others_write, _nobody_made])
def test_what_cannot_be_written_safely_is_not(
    orders: Orders, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    lists(orders, tmp_path / "allowed")
    spoil(tmp_path / "allowed")
    with pytest.raises(Failed):
        orders.put(f"{tmp_path}/allowed/x", b"x", 0o600)
    with pytest.raises(Failed):
        orders.put(f"{tmp_path}/allowed/nowhere/x", b"x", 0o600)
    assert not (tmp_path / "allowed/nowhere").exists()
    with pytest.raises(BadInput, match="has more than 256 KiB"):
        orders.put(f"{tmp_path}/allowed/y", b"x" * (LARGEST + 1), 0o600)


def test_a_link_is_replaced_and_not_followed(orders: Orders, tmp_path: Path) -> None:
    lists(orders, tmp_path / "allowed")
    (tmp_path / "other/secret").write_text("kept")
    (tmp_path / "allowed/x").symlink_to(tmp_path / "other/secret")
    orders.put(f"{tmp_path}/allowed/x", b"new", 0o600)
    assert (tmp_path / "other/secret").read_text() == "kept"
    assert (tmp_path / "allowed/x").read_bytes() == b"new"
