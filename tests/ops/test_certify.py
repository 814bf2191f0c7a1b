# SPDX-License-Identifier: BSD-2-Clause
"""A certification as a job: what it reports, and that it leaves nothing behind."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from moorage.errors import BadInput, MoorageError, NotFound, WrongState
from moorage.storage import Command
from moorage.storage.certify import CHECKS, Report, as_text
from moorage.testing.cluster import SimCluster


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await SimCluster.start(tmp_path / "nodes")
    yield cluster
    await cluster.stop()


async def certified(cluster: SimCluster, **fields: Any) -> Report:
    asked = {"provider": "san", "second_node": "node2"} | fields
    told = await cluster.run("OP_EXT_STORAGE_CERTIFY", **asked)
    report = convert(told, Report)
    assert report.passed == told["passed"]
    return report


def verdicts(report: Report, verdict: str) -> set[str]:
    return {one.check for one in report.checks if one.verdict == verdict}


def clean(cluster: SimCluster, tmp_path: Path) -> bool:
    notes = list((tmp_path / "nodes").glob("*/trials/*"))
    san = cluster.nodes.san
    return not (dict(san.volumes) or dict(san.attached) or notes)


async def test_every_check_is_made_and_nothing_is_left(
    cluster: SimCluster, tmp_path: Path
) -> None:
    report = await certified(cluster)
    assert [one.check for one in report.checks] == [one.name for one in CHECKS]
    assert verdicts(report, "fails") == {"create-foreign"}  # it takes what is there
    moot = {"verify-refuses", "capacity", "stale-epoch", "link"}
    assert verdicts(report, "not applicable") == moot
    assert report.nodes == ("node1", "node2")
    assert clean(cluster, tmp_path)
    lines = list(as_text(report))
    assert "Result:              NOT passed (39 passes, 1 fails, 4 not applicable)" in (
        lines
    )
    (line,) = [line for line in lines if "create-foreign" in line]
    assert line.startswith("FAILS ")
    assert line.endswith("[S0-25 S0-50]")


async def test_without_a_second_node_some_checks_are_left_out(
    cluster: SimCluster,
) -> None:
    report = await certified(cluster, second_node=None, node="node3")
    two = {one.name for one in CHECKS if one.needs_two}
    assert two <= verdicts(report, "not applicable")
    assert report.nodes == ("node3",)


async def test_a_provider_that_cannot_run_fails_once(
    cluster: SimCluster, tmp_path: Path
) -> None:
    def broken(_node: str, command: Command) -> bool:
        return command.argv[0].endswith("/create")

    for node in cluster.nodes.nodes.values():
        node.machine.refuse = broken
    report = await certified(cluster)
    assert not report.passed
    assert verdicts(report, "fails") == {"runs"}
    others = [one for one in report.checks if one.check != "runs"]
    assert {one.why for one in others} == {"it does not run at all: see runs"}
    assert clean(cluster, tmp_path)


async def test_one_check_may_be_made_alone(cluster: SimCluster) -> None:
    report = await certified(cluster, checks=("grow", "shared"))
    assert [one.check for one in report.checks] == ["grow", "shared"]
    assert report.passed


@pytest.mark.parametrize(
    ("fields", "error", "why"),
    [
        ({"provider": "nas"}, NotFound, "no node has a valid ExtStorage provider"),
        ({"node": "node1", "provider": "nas"}, WrongState, "node node1: Directory"),
        ({"second_node": "node1"}, BadInput, "the second node is the first: node1"),
        ({"checks": ("all",)}, BadInput, "there is no check 'all'"),
        ({"params": {"colour": "red"}}, BadInput, "has no parameter 'colour'"),
        ({"size": 0}, BadInput, "a disk has between 1 and"),
    ],
)
async def test_what_cannot_be_certified_is_refused(
    cluster: SimCluster,
    fields: dict[str, Any],
    error: type[MoorageError],
    why: str,
) -> None:
    with pytest.raises(error, match=why):
        await certified(cluster, **fields)


@pytest.mark.parametrize("check", ["grow-twice", "snapshot-apart", "migration"])
async def test_an_interrupted_one_leaves_nothing_behind(
    cluster: SimCluster, tmp_path: Path, check: str
) -> None:
    """A node breaks in any command of a check: what was made is taken back."""
    nodes = cluster.nodes.nodes.values()
    for number in range(1, 100):
        ran: list[str] = []

        def breaks(_node: str, command: Command, ran=ran, number=number) -> bool:
            ran.append(command.argv[0])
            if len(ran) == number:
                raise ZeroDivisionError  # nobody expects it, and nobody catches it
            return False

        for node in nodes:
            node.machine.refuse = breaks
        try:
            await certified(cluster, checks=(check,))
        except MoorageError:
            assert len(ran) >= number
        else:
            assert number > 10
            assert len(ran) < number
            return
        assert clean(cluster, tmp_path), number
    raise AssertionError


async def test_what_cannot_be_removed_is_told(cluster: SimCluster) -> None:
    def stuck(_node: str, command: Command) -> bool:
        return command.argv[0].endswith("/remove")

    for node in cluster.nodes.nodes.values():
        node.machine.refuse = stuck
    report = await certified(cluster, checks=("create",))
    assert not report.passed
    (name,) = report.left
    assert name in cluster.nodes.san.volumes
    assert f"  {name}" in list(as_text(report))
