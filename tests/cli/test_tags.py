# SPDX-License-Identifier: BSD-2-Clause
"""Tags of every kind of object, typed at a master on simulated nodes."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from moorage.errors import NotFound
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.served import Served, served

UUID = "4f2c1b7e-0000-4000-8000-000000000001"
OTHER = "4f2c1b7e-0000-4000-8000-000000000000"
"""Of a disk that has a name: it may get another one, and the uuid stays."""
OBJECTS = [
    ("gnt-cluster", "", "/cluster"),
    ("gnt-group", "default", "/nodegroup/default"),
    ("gnt-node", "node1", "/nodes/node1"),
    ("gnt-instance", "web1", "/instances/web1"),
    ("gnt-storage pool", "fast", "/pools/fast"),
    ("gnt-disk", "data1", f"/disks/{OTHER}"),
    ("gnt-disk", UUID, f"/disks/{UUID}"),
]
Lines = Callable[..., list[str]]


@pytest.fixture(scope="module")
def sim() -> Iterator[Served]:
    builder = ClusterBuilder().disk("data1", uuid=OTHER).disk(UUID)
    builder.objects[UUID] = replace(builder.objects[UUID], name=None)
    builder.instance("web1", "node1", (OTHER,))
    with served(builder) as found:
        found.inside(pooled)
        yield found


async def pooled(cluster: SimCluster) -> None:
    await cluster.run("OP_STORAGE_POOL_ADD", pool_name="fast", provider="san")


@pytest.fixture
def types(typed, sim: Served) -> Lines:
    def types_(line: str, status: int = 0) -> list[str]:
        screen = typed(line, **sim.environ)
        assert screen.status == status, screen.err
        return (screen.out or screen.err).splitlines()

    return types_


@pytest.mark.requirement("S3-02")
@pytest.mark.parametrize(("program", "name", "path"), OBJECTS)
def test_every_kind_of_object_has_tags(
    types: Lines, tmp_path: Path, program: str, name: str, path: str
) -> None:
    listed = tmp_path / "tags"
    listed.write_text("tier:gold\n\n  owner@ops \n")
    types(f"{program} add-tags --from {listed} {name} a/b")
    types(f"{program} add-tags {name} a/b")
    assert types(f"{program} list-tags {name}") == ["a/b", "owner@ops", "tier:gold"]
    assert f"{path} tier:gold" in types("gnt-cluster search-tags ^tier:")
    types(f"{program} remove-tags {name} a/b tier:gold")
    assert types(f"{program} list-tags {name}") == ["owner@ops"]
    types(f"{program} remove-tags {name} owner@ops")
    assert types(f"{program} list-tags {name}") == []


@pytest.mark.requirement("S3-02")
def test_a_search_finds_disks_among_the_others_in_ganetis_form(types: Lines) -> None:
    for program, name, _ in OBJECTS:
        types(f"{program} add-tags {name} found")
    hits = [f"{path} found" for _, _, path in OBJECTS]
    found = types("gnt-cluster search-tags fou.d$")
    assert sorted(found) == sorted(hits)
    asked = json.loads("\n".join(types("gnt-cluster search-tags --json ^found$")))
    assert [f"/disks/{OTHER}", "found"] in asked
    for program, name, _ in OBJECTS:
        types(f"{program} remove-tags {name} found")
    assert types("gnt-cluster search-tags found", status=1) == []


def test_a_tag_that_is_not_there_cannot_be_removed(types: Lines) -> None:
    types("gnt-disk add-tags data1 kept")
    told = types("gnt-disk remove-tags data1 kept lost", status=1)
    assert "Tag(s) 'lost' not found" in told
    assert types("gnt-disk list-tags data1") == ["kept"]
    types("gnt-disk remove-tags data1 kept")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("x" * 129, "is not a tag: at most 128 letters"),
        ("'a b'", "is not a tag"),
        ("", "no tag was named"),
        ("--from /nowhere", "/nowhere cannot be read"),
    ],
)
def test_what_is_no_tag_is_refused(types: Lines, words: str, sentence: str) -> None:
    assert sentence in "\n".join(types(f"gnt-disk add-tags data1 {words}", status=1))
    assert types("gnt-disk list-tags data1") == []


def test_an_object_has_no_more_tags_than_ganeti_allows(
    types: Lines, tmp_path: Path
) -> None:
    many = tmp_path / "many"
    many.write_text("\n".join(f"t{number}" for number in range(4096)))
    types(f"gnt-node add-tags --from {many} node2")
    told = types("gnt-node add-tags node2 onemore", status=1)
    assert "an object has at most 4096 tags, not 4097" in told
    types(f"gnt-node remove-tags --from {many} node2")


def test_a_pattern_that_is_none_is_refused(types: Lines) -> None:
    told = types("gnt-cluster search-tags '(x+)+y'", status=1)
    assert "could take for ever" in "\n".join(told)


def test_opcodes_take_ganetis_fields(sim: Served) -> None:
    async def asked(cluster):
        about = {"kind": "instance", "name": "web1"}
        await cluster.run("OP_TAGS_SET", tags=["z", "a"], **about)
        got = await cluster.run("OP_TAGS_GET", use_locking=True, **about)
        found = await cluster.run("OP_TAGS_SEARCH", pattern="^[az]$")
        await cluster.run("OP_TAGS_DEL", tags=["a", "z"], **about)
        lost = await cluster.refused("OP_TAGS_GET", kind="instance", name="web9")
        return got, found, lost

    got, found, lost = sim.inside(asked)
    assert got == ["a", "z"]
    assert found == [["/instances/web1", "a"], ["/instances/web1", "z"]]
    assert isinstance(lost, NotFound)


@pytest.mark.requirement("S3-07")
def test_a_tag_makes_a_new_version_of_a_disk_and_the_same_tag_does_not(
    sim: Served,
) -> None:
    async def serials(cluster):
        seen = [cluster.config.disk("data1").serial_no]
        for _ in range(2):
            await cluster.run("OP_TAGS_SET", kind="disk", name="data1", tags=["once"])
            seen.append(cluster.config.disk("data1").serial_no)
        await cluster.run("OP_TAGS_DEL", kind="disk", name="data1", tags=["once"])
        return seen

    first, *later = sim.inside(serials)
    assert later == [first + 1, first + 1]
