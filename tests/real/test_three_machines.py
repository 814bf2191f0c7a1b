# SPDX-License-Identifier: BSD-2-Clause
"""Three fresh Debian systems become a cluster by what the page says, and stay one."""

import asyncio
import re
import subprocess
import tempfile
from pathlib import Path

import pytest

from moorage import __version__
from moorage.node.hypervisors.kvm import Kvm
from moorage.testing.guest import Guest
from moorage.testing.guest_image import build, write_image
from support.repository import Keyring
from support.three import BUILD, DEBS, Three, machines

SHARED = "/srv/ganeti/shared-file-storage"

pytestmark = pytest.mark.real


# -- machines --------------------------------------------------------------------------


class Town(Three):
    """The machines as a cluster with guests."""

    def home(self, name):
        line = f"gnt-instance list --no-headers -o pnode {name}"
        return self.master.run(line).strip()

    def is_well(self):
        self.master.wait("gnt-cluster verify | grep 'No problem found'")

    def status(self, name):
        line = f"gnt-instance list --no-headers -o status {name}"
        return self.master.run(line).strip()


def storage(at):
    shared = at / "shared"
    shared.mkdir()
    build(BUILD / "guest")
    write_image(shared / "guest.raw", BUILD / "guest")
    return {shared: SHARED}


@pytest.fixture(scope="module")
def three():
    with machines(storage) as found:
        yield Town(found.machines)


# -- the page --------------------------------------------------------------------------

PAGE = "start/three-machines.md"
PACKAGES = "how-to/packages.md"


@pytest.mark.parametrize(
    "chapter", ["Names", "A bridge", "Install", "The cluster", "Storage", "A guest"]
)
def test_the_page_is_word_for_word_true(three, chapter):
    three.follow(PAGE, chapter)


# -- what happens to it afterwards -----------------------------------------------------


def qemu(machine, name):
    """Return the process of a guest there."""
    return machine.run(f"pgrep -f '^qemu-system.* -name {name} ' || true").split()


def guests(three, *names):
    """Return clients of guests, each where it runs."""
    for name in names:
        line = f"gnt-instance list --no-headers -o uuid,pnode {name}"
        uuid, node = three.master.run(line).split()
        # A machine's socket is reached through its file system, whatever its network.
        run = Path(f"/proc/{three[node].pid}/root/var/lib/moorage-node/run/kvm")
        yield Guest(Kvm(run, "").channel(uuid))


def test_guests_ping_each_other_before_and_after_a_migration(three):
    async def said(number, command):
        async with list(guests(three, "web1", "web2"))[number] as guest:
            return await guest.run(command)

    def ping():
        return asyncio.run(said(0, "ping -c 2 -W 5 198.51.100.2"))

    for number in (0, 1):
        address = (
            f"ip addr add 198.51.100.{number + 1}/24 dev eth0; ip link set eth0 up"
        )
        asyncio.run(said(number, address))
    assert "2 packets received" in ping()
    three.master.run("gnt-instance migrate -f -n node2 web1")
    assert "2 packets received" in ping()


def test_the_master_runs_without_root_and_without_capabilities(three):
    node1 = three["node1"]
    pid = node1.run("systemctl show -P MainPID moorage-master").strip()
    status = node1.run(f"cat /proc/{pid}/status")
    assert node1.run(f"stat -c %U /proc/{pid}").strip() == "moorage"
    assert re.search(r"^CapEff:\s+0+$", status, re.MULTILINE)
    assert node1.run("find /var/lib/moorage ! -user moorage") == ""


RUNS = "gnt-instance list --no-headers -o status web1 | grep -x running"


def test_guests_go_on_when_their_agent_is_restarted_or_killed(three):
    node = three.home("web1")
    before = qemu(three[node], "web1")
    assert len(before) == 1
    three[node].run("systemctl restart moorage-node")
    three[node].run("systemctl kill --signal=KILL --kill-whom=main moorage-node")
    # Just after the kill systemd takes the unit for active still: the master asks.
    three.master.wait(RUNS)
    assert qemu(three[node], "web1") == before


OFTEN = "/etc/systemd/system/moorage-watcher.timer.d/often.conf"


def test_a_rebooted_node_gets_its_guests_back_by_the_timer(three):
    node = three.home("web1")
    # What `systemctl edit moorage-watcher.timer` writes: not every five minutes.
    lines = r"[Timer]\nOnUnitActiveSec=5s\nAccuracySec=1s\n"
    three.master.run(f"install -D /dev/null {OFTEN}; printf '{lines}' > {OFTEN}")
    three.master.run("systemctl daemon-reload; systemctl restart moorage-watcher.timer")
    three[node].reboot()
    three.master.wait(RUNS)
    assert len(qemu(three[node], "web1")) == 1
    # As root, once the timer's is not at work: the timer's next run goes on.
    three.master.wait("moorage watcher")
    three.master.run("systemctl start moorage-watcher.service")
    assert three.master.run("find /var/lib/moorage ! -user moorage") == ""
    three.master.run(f"rm {OFTEN}; systemctl daemon-reload")
    three.master.run("systemctl restart moorage-watcher.timer")


def test_a_master_without_power_comes_back_by_itself(three):
    node1 = three["node1"]
    begun = node1.run("gnt-job list --no-headers -o id").split()
    node1.pull_plug()
    node1.boot()
    node1.wait("gnt-cluster info")
    assert set(begun) <= set(node1.run("gnt-job list --no-headers -o id").split())
    three.is_well()


def test_a_node_without_power_loses_no_guest(three):
    master, lost = three.master, "node3"
    assert three.home("web2") == lost
    three[lost].pull_plug()
    master.run(f"gnt-node modify --offline yes --force {lost}")
    master.run("gnt-instance failover -f --ignore-consistency -n node1 web2")
    assert three.status("web2") == "running"
    three[lost].boot()
    three[lost].wait("systemctl is-active moorage-node")
    master.run(f"gnt-node modify --offline no {lost}")
    three.is_well()  # what it had attached went with its power


FAILED = "systemctl list-units --failed --no-legend --plain 'moorage*'"


def test_the_master_moves_under_running_guests_and_back(three):
    before = {name: qemu(three[three.home(name)], name) for name in ("web1", "web2")}
    former = three.master
    three.follow(PAGE, "Another master")
    three.master = three["node2"]
    former.wait("! systemctl is-active moorage-master")
    three.is_well()
    former.run("systemctl start moorage-master moorage-watcher")  # as at each boot
    assert former.run(FAILED) == ""
    assert "node2" in former.run("gnt-instance list", check=False)  # where to go
    former.wait("gnt-cluster master-failover --yes-do-it")
    three.master = former
    three["node2"].wait("! systemctl is-active moorage-master")
    three.is_well()
    assert three["node2"].run(FAILED) == ""
    after = {name: qemu(three[three.home(name)], name) for name in before}
    assert after == before


def _beside(path):
    return f"-not -path '{path}'"


def next_version(to):
    """Write the packages once more, as the next version."""
    to.mkdir()
    for deb in DEBS.glob("*.deb"):
        with tempfile.TemporaryDirectory(dir=to) as inside:
            subprocess.run(["dpkg-deb", "-R", deb, inside], check=True)
            control = Path(inside, "DEBIAN", "control")
            text = control.read_text()
            control.write_text(text.replace(__version__, NEXT))
            built = to / deb.name.replace(__version__, NEXT)
            argv = ["dpkg-deb", "-Zgzip", "-z1", "-b", inside, built]
            subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)


NEXT = f"{__version__}.1"


def test_an_upgrade_exchanges_agent_and_master_under_running_guests(three, tmp_path):
    next_version(tmp_path / "next")
    node = three.home("web1")
    guest = qemu(three[node], "web1")
    mains = "systemctl show -P MainPID moorage-node"
    agents = three.each(lambda machine: machine.run(mains))
    with Keyring(tmp_path / "gnupg") as keyring:
        said = keyring.put(tmp_path / "repo", *(tmp_path / "next").glob("*.deb"))
    assert said == ""
    for machine in three.machines.values():
        machine.bring(tmp_path / "repo", "/srv/moorage-repo")
    three.follow(PACKAGES, "A repository")
    three.follow(PACKAGES, "Upgrade")
    versions = three.each(lambda one: one.run("dpkg-query -W -f '${Version}' moorage"))
    assert versions == [NEXT] * 3
    assert not set(agents) & set(three.each(lambda machine: machine.run(mains)))
    assert qemu(three[node], "web1") == guest
    assert three.status("web1") == "running"


def test_a_node_that_leaves_keeps_nothing_but_data(three):
    three.follow(PACKAGES, "Remove a node")
    node3 = three["node3"]
    left = node3.run("dpkg-query -W -f '${Package} ${Status}\\n' 'moorage*' || true")
    assert "installed" not in left
    assert "config-files" not in left
    units = node3.run("systemctl list-unit-files 'moorage*' --no-legend; ip -o link")
    assert "moorage" not in units


def test_a_purge_names_the_data_that_it_leaves_and_ends_no_guest(three):
    node2 = three["node2"]
    if three.home("web1") != "node2":
        three.master.run("gnt-instance migrate -f -n node2 web1")
    guest = qemu(node2, "web1")
    said = node2.run("apt-get purge -y 'moorage*'")
    assert "/var/lib/moorage-node is left" in said
    assert "guests go on" in said
    assert qemu(node2, "web1") == guest
    spared = ("/root/*", "/proc/*", "/srv/*", "*/apt/*")  # the repository, and apt's
    look = " ".join(["find / -xdev -name '*moorage*'", *map(_beside, spared)])
    left = {"/var/lib/moorage-node", "/var/lib/moorage"}  # it was the master once
    assert set(node2.run(look).splitlines()) == left
