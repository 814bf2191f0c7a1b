# SPDX-License-Identifier: BSD-2-Clause
"""What Ganeti's designs have people type about storage, typed, and what it says."""

from collections.abc import Callable, Iterator

import pytest

from moorage.testing.cluster import ClusterBuilder
from moorage.testing.served import Served, served

ADD = "gnt-instance add -n node1 --no-install --no-nics"


@pytest.fixture(scope="module")
def sim() -> Iterator[Served]:
    with served(ClusterBuilder(nodes=4)) as found:
        yield found


@pytest.mark.requirement("S0-58", "S0-62")
def test_a_provider_is_named_for_ext_and_for_nothing_else(
    types: Callable[..., str],
) -> None:
    told = types(f"{ADD} -t plain --disk 0:size=1G,provider=san web1", 1)
    assert (
        "The 'provider' option is only valid for the ext disk template, not plain"
    ) in told
    told = types(f"{ADD} -t ext --disk 0:size=1G web1", 1)
    assert "Missing provider for template 'ext'" in told
    told = types(f"{ADD} -t ext --disk 0:size=1G,provider=san,colour=red web1", 1)
    assert "has no parameter 'colour': it takes tier" in told


@pytest.mark.requirement("S0-09", "S0-12", "S0-13", "S0-14")
def test_where_an_instance_goes_is_typed_or_chosen(types: Callable[..., str]) -> None:
    """The target is named, or an allocator is, or the default one is asked."""

    def home() -> str:
        return types("gnt-instance list --no-headers -o pnode web2").strip()

    types(f"{ADD} -t ext --disk 0:size=1G,provider=san web2")
    types("gnt-instance migrate -f -n node2 web2")
    assert home() == "node2"
    types("gnt-instance failover -f -n node3 web2")
    assert home() == "node3"
    told = types("gnt-instance migrate -f -n node1 -I hail web2", 1)
    assert "iallocator" in told
    types("gnt-instance migrate -f -I hail web2")
    chosen = home()
    assert chosen != "node3"
    types("gnt-instance failover -f web2")
    assert home() != chosen
    before = home()
    other = "node4" if before != "node4" else "node1"
    types(f"gnt-node migrate -f -n {other} {before}")
    assert home() == other
    types(f"gnt-node evacuate -f -I hail {other}")
    assert home() != other
    types(f"{ADD} -t file --disk 0:size=1G stays")
    told = types("gnt-instance migrate -f -n node2 stays", 1)
    assert "Instance's disk layout 'file' does not allow migrations" in told
    told = types("gnt-instance failover -f -n node2 stays", 1)
    assert "file" in told


@pytest.mark.requirement("S0-18")
def test_the_directory_that_nodes_share_is_typed_and_shown(
    types: Callable[..., str],
) -> None:
    """Set and shown; a page of the how-to makes a new cluster with it."""
    types("gnt-cluster modify --shared-file-storage-dir=/srv/ganeti/shared")
    assert "/srv/ganeti/shared\n" in types("gnt-cluster info")


def test_a_disk_that_is_added_may_lie_in_a_directory_of_its_own(
    types: Callable[..., str],
) -> None:
    """So may one that is converted; a directory for no image file is refused."""
    types(f"{ADD} -t ext --disk 0:size=64M,provider=san,name=there files")
    add = "gnt-instance modify --disk add:size=64M,dev_type=sharedfile,name=img"
    types(f"{add} --file-storage-dir gold files")
    volume = types("gnt-disk list --no-headers -o volume img")
    assert "/gold/files/" in volume
    told = types(f"{add.replace('img', 'up')} --file-storage-dir ../up files", 1)
    assert "lies outside of" in told
    other = "gnt-instance modify --disk add:size=64M,dev_type=ext,provider=san"
    told = types(f"{other} --file-storage-dir gold files", 1)
    assert "no disk that comes is an image file" in told
    types("gnt-instance modify -t sharedfile --file-storage-dir silver files")
    assert "/silver/files/" in types("gnt-disk list --no-headers -o volume there")


def test_a_volume_of_a_provider_is_adopted_and_attached(
    types: Callable[..., str],
) -> None:
    """By itself, and as a new disk of an instance, with what it holds."""
    types(f"{ADD} -t ext --disk 0:size=64M,provider=san,name=lost finder")
    volume = types("gnt-disk list --no-headers -o volume lost").strip()
    types("gnt-disk detach lost")
    types("gnt-disk forget -f --reason gone lost")
    add = f"gnt-instance modify --disk add:adopt={volume},dev_type=ext,provider=san"
    types(f"{add},name=found finder")
    told = types(f"{add},name=again finder", 1)
    assert f"volume {volume} is disk found already" in told
    types("gnt-disk detach found")
    types("gnt-disk forget -f --reason gone found")
    types(f"gnt-disk adopt -t ext -p san {volume} --name found")
    types("gnt-disk attach found finder")
    types("gnt-instance add -t diskless -n node2 --no-install --no-nics bare")
    told = types("gnt-instance modify -t plain bare", 1)
    assert "a disk that is added names its template" in told
