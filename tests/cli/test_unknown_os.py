# SPDX-License-Identifier: BSD-2-Clause
"""An OS that is not there is refused by whatever command names it."""

from collections.abc import Callable, Iterator

import pytest

from moorage.testing.cluster import ClusterBuilder
from moorage.testing.served import Served, served

TOLD = "node node1 has no OS 'nosuch'"
DISK = "--disk 0:size=64M"
ADD = "gnt-instance add --no-nics -n node1"


@pytest.fixture
def sim() -> Iterator[Served]:
    with served(ClusterBuilder()) as found:
        yield found


@pytest.mark.parametrize(
    "line",
    [
        f"{ADD} -t plain {DISK} -o nosuch new",
        f"{ADD} -t plain {DISK} --no-install -o nosuch new",
        f"{ADD} -t plain --disk 0:adopt=lv0 -o nosuch new",
        f"{ADD} -t diskless -o nosuch new",
        f"{ADD} -t diskless --no-install -o nosuch new",
        "gnt-backup import --src-dir web1 -n node1 --no-nics -o nosuch new",
        "gnt-instance reinstall -f -o nosuch web1",
        "gnt-instance modify -o nosuch web1",
        "gnt-instance modify -o nosuch bare",
    ],
)
def test_it_is_refused(types: Callable[..., str], sim: Served, line: str) -> None:
    volume = {
        "size": 64,
        "data": "",
        "tags": "",
        "origin": "",
        "devices": ("/dev/sda",),
    }
    sim.cluster.nodes.san.logical["node1 xenvg/lv0"] = volume
    types(f"{ADD} -t plain {DISK} --no-install --no-start web1")
    types(f"{ADD} -t diskless --no-start bare")
    types("gnt-backup export -n node1 web1")
    before = sim.cluster.config
    said = types(line, status=1)
    assert TOLD in said
    assert "hint: gnt-os list" in said
    assert "nothing was changed" in said
    assert sim.cluster.config == before


def test_nor_is_a_node_chosen_for_it(types: Callable[..., str]) -> None:
    said = types("gnt-instance add --no-nics -t diskless -o nosuch new", status=1)
    assert "has no OS 'nosuch'" in said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("-o tiny+huge", "OS 'tiny' has no variant 'huge'"),
        ("-o tiny -O bogus=1", "OS 'tiny' has no parameter 'bogus'"),
    ],
)
def test_nor_is_what_it_lacks(types: Callable[..., str], words: str, told: str) -> None:
    for disks in ("-t diskless", f"-t plain {DISK} --no-install"):
        assert told in types(f"{ADD} {disks} {words} new", status=1)


def test_what_can_be_brought_back_without_it_is(
    types: Callable[..., str], sim: Served
) -> None:
    """A backup is of use although nobody keeps the scripts that once installed it."""
    types(f"{ADD} -t plain {DISK} -o tiny --no-start web1")
    types("gnt-backup export -n node1 web1")
    types("gnt-instance remove -f web1")
    sim.cluster.nodes.nodes["node1"].machine.systems.clear()
    types("gnt-backup import --no-nics -n node1 web1")
    job = types("gnt-job list --no-headers -o id").split()[-1]
    said = types(f"gnt-job info {job}")
    assert "keeps the OS of its export, but node node1 has no OS" in said
    assert "has no OS 'tiny'" in types("gnt-instance reinstall -f web1", status=1)


def test_a_node_that_cannot_be_asked_is_told_of(types: Callable[..., str]) -> None:
    types("gnt-instance add --no-nics -n node2 -t diskless --no-start bare")
    types("gnt-node modify --offline=yes node2")
    types("gnt-instance modify -o nosuch bare")
    job = types("gnt-job list --no-headers -o id").split()[-1]
    assert "nobody looked whether it has OS" in types(f"gnt-job info {job}")


def test_one_that_is_there_is_on_record(types: Callable[..., str]) -> None:
    types(f"{ADD} -t diskless -o tiny new")
    shown = types("gnt-instance list --no-headers -o name,os")
    assert shown.split() == ["new", "tiny"]
