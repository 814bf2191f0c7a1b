# SPDX-License-Identifier: BSD-2-Clause
"""The driver sees what it looks for: each fault, set before its eyes."""

import random
from pathlib import Path

import pytest
from account import two_writers
from answers import Account
from kept import Keeper, Volume, Volumes
from ledger import Ledger
from torn import torn
from truth import Guest


def guest(node: str, *disks: str, state: str = "running", uuid: str = "u1") -> Guest:
    return Guest(node, uuid, "web", state, frozenset(disks))


@pytest.mark.parametrize("disks", [(), ("d1",)])
def test_a_guest_that_runs_twice_is_seen_with_a_disk_or_without(
    disks: tuple[str, ...],
) -> None:
    assert two_writers([guest("n1", *disks), guest("n2", *disks)])
    assert not two_writers([guest("n1", *disks), guest("n2", *disks, state="moved")])


def test_two_guests_with_one_disk_are_seen() -> None:
    both = [guest("n1", "d1"), guest("n1", "d1", uuid="u2")]
    assert two_writers(both) == ["disk d1: ['web on n1', 'web on n1']"]


def test_a_number_that_two_jobs_have_is_seen(tmp_path: Path) -> None:
    account = Account(Ledger(tmp_path, "chaos", 1))
    account.accept(7)
    assert not account.faults
    account.accept(7)
    assert account.faults == [("lost", "job 7 was accepted twice")]


def test_what_a_power_cut_tore_is_seen() -> None:
    whole = {"store": {"sound": "ok"}, "copy": None, "fences": {"term": "3"}}
    assert not list(torn(whole | {"empty": []}, "master, comes back"))
    ways = {
        "the store is damaged": whole | {"store": {"sound": "row 3 missing"}},
        "the store cannot be read": whole | {"store": {"error": "malformed"}},
        "fence term is empty": whole | {"fences": {"term": ""}},
        "agent.json is empty": whole | {"empty": ["agent.json"]},
    }
    for said, seen in ways.items():
        (fault,) = torn({"empty": []} | seen, "master, comes back")
        assert fault[0] == "torn"
        assert fault[1].startswith(said)


def test_data_that_were_destroyed_changed_or_left_are_seen(tmp_path: Path) -> None:
    class Nobody:
        instance = "c1"

        def ask(self, op_id: str, **_: object) -> str:
            raise AssertionError(op_id)

    there = Volumes(tmp_path / "kept")
    keeper = Keeper(Nobody(), random.Random(1), there, "c1")  # noqa: S311
    for name in ("a", "b", "c"):
        (tmp_path / "kept" / name).touch()
        keeper.volumes[name] = Volume(there.write(name), 8)
    keeper.ours = {"a", "b", "c", "d"}
    known = dict.fromkeys(("a", "b", "c"), False)
    assert not list(keeper.look(known, there.digests()))
    (tmp_path / "kept" / "a").unlink()
    there.write("b")
    (tmp_path / "kept" / "d").touch()
    seen = list(keeper.look({"a": False, "b": False}, there.digests()))
    assert seen == [
        "volume a with somebody's data was destroyed",
        "volume b has other data than what was written",
        "acknowledged disk c is gone",
        "orphan: nobody knows of volume d, and nobody wants it",
    ]
