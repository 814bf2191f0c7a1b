# SPDX-License-Identifier: BSD-2-Clause
"""An instance has the template of its disks: none on record, and none without disks."""

from collections.abc import Callable, Iterator

import pytest

from moorage.testing.cluster import ClusterBuilder
from moorage.testing.served import Served, served

Types = Callable[..., str]
NEW = "gnt-instance add --no-install --no-nics --no-start -n node1"
EXT = "dev_type=ext,provider=san"


@pytest.fixture(scope="module")
def sim() -> Iterator[Served]:
    with served(ClusterBuilder()) as found:
        yield found


@pytest.fixture
def template(types: Types) -> Callable[[str], str]:
    """Return what every query tells of an instance's template."""

    def told(name: str) -> str:
        listed = types(f"gnt-instance list --no-headers -o disk_template {name}")
        shown = types(f"gnt-instance info {name}")
        assert f"Disk template: {listed.strip()}\n" in shown
        listed = listed.strip()
        where = f"--filter 'disk_template == \"{listed}\"'"
        found = types(f"gnt-instance list --no-headers -o name {where}")
        assert name in found.split()
        return listed

    return told


@pytest.mark.requirement("S3-34")
def test_queries_compute_the_template_from_the_disks_that_are_there(
    types: Types, template: Callable[[str], str]
) -> None:
    types(f"{NEW} -t plain --disk 0:size=64M web1")
    assert template("web1") == "plain"
    types(f"gnt-instance modify --disk add:size=64M,{EXT} web1")
    assert template("web1") == "mixed"
    types("gnt-instance modify --disk 0:detach web1")
    assert template("web1") == "ext"
    types("gnt-instance modify --disk 0:detach web1")
    assert template("web1") == "diskless"


@pytest.mark.requirement("S3-35")
def test_an_instance_is_diskless_while_no_disk_is_attached(
    types: Types, template: Callable[[str], str]
) -> None:
    types(f"{NEW} -t plain --disk 0:size=64M,name=data web2")
    types(f"{NEW} -t diskless web3")
    stays = "does not allow failover"
    assert stays in types("gnt-instance failover -f -n node2 web2", status=1)
    types("gnt-instance modify --disk data:detach web2")
    for name in ("web2", "web3"):  # made with a disk, and without
        assert template(name) == "diskless"
        told = types(f"gnt-instance recreate-disks {name}", status=1)
        assert f"instance {name} has no disks" in told
        assert "disk" in types(f"gnt-instance replace-disks -p {name}", status=1)
        types(f"gnt-instance failover -f -n node2 {name}")
        types(f"gnt-instance startup {name}")
        types(f"gnt-instance migrate -f -n node1 {name}")
        types(f"gnt-instance shutdown {name}")
    types("gnt-instance modify --disk attach:name=data web3")
    assert template("web3") == "plain"
    assert stays in types("gnt-instance failover -f -n node2 web3", status=1)
