# SPDX-License-Identifier: BSD-2-Clause
"""Scratch clusters as processes: up, down, and what goes wrong before and after.

The nodes are simulated, so nothing here needs root or QEMU.
"""

import io
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from moorage.cli.tour.steps import STEPS
from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster, process
from moorage.daemons.devcluster import Scratch

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent


def typist(**environ: str) -> Typist:
    path = f"{BIN}:{os.environ['PATH']}"
    return Typist({"PATH": path, **environ}, io.StringIO())


HANDS = typist()


def refused(line: str, hands: Typist = HANDS) -> str:
    """Type a command that must be refused, in a sentence; return what it says."""
    said = hands.refused(line)
    assert "Traceback" not in said
    return said


def left(directory: Path) -> list[str]:
    """Return the command lines that name something in a directory."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode()
        except OSError:  # it ended meanwhile
            continue
        if f"{directory}/" in line and int(entry.parent.name) != os.getpid():
            found.append(line)
    return found


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Return where a cluster may come up; whatever comes up there is ended."""
    at = tmp_path / "c"
    yield at
    if (at / "scratch.json").exists():
        devcluster.down(at)
    assert left(tmp_path) == []


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scratch]:
    """Return a cluster of two nodes for all tests that leave it as it is."""
    at = tmp_path_factory.mktemp("town") / "c"
    try:
        HANDS.type(f"moorage up {at} --nodes 2 --hypervisor sim")
        yield devcluster.read(at)
    finally:
        if at.exists():
            devcluster.down(at)
    assert left(at.parent) == []


def test_up_and_down(place: Path) -> None:
    told = HANDS.type(f"moorage up {place} --hypervisor sim")
    assert f"export MOORAGE_DIR={place}/master" in told
    assert told == HANDS.type(f"moorage env {place}")
    script = f'eval "$(moorage env {place})"; gnt-node list --no-headers -o name'
    names = HANDS.type(f"sh -c '{script}'").split()
    assert names == ["node1", "node2", "node3"]
    said = refused(f"moorage up {place} --hypervisor sim")
    assert f"there is a scratch cluster in {place}" in said
    assert f"moorage down {place}" in said
    # Three agents, the master and its supervisor: the second one did them no harm.
    assert len(left(place)) == 5
    HANDS.type(f"moorage down {place}")
    assert left(place) == []
    assert not place.exists()
    assert f"there is no scratch cluster in {place}" in refused(f"moorage down {place}")


def test_a_tour_does_not_walk_over_a_cluster(town: Scratch) -> None:
    said = refused(f"moorage tour {town.root} --sim")
    assert f"there is a scratch cluster in {town.root}" in said
    hands = typist(**town.environment())
    assert len(hands.ask("gnt-node list -o name")) == 2


def test_a_second_cluster_is_refused_before_its_guest_is_built(
    town: Scratch, tmp_path: Path
) -> None:
    """`make run` looks before it builds; what it needs itself is there already."""
    guest = tmp_path / "guest"
    words = [f"RUN_DIR={town.root}", f"GUEST={guest}", "run"]
    make = ["make", "-o", ".venv/.installed", *words]
    root = Path(__file__).parents[2]
    done = subprocess.run(make, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode
    told = f"There is a cluster in {town.root} already; to end it: make stop"
    assert told in done.stderr
    assert not guest.exists()


def test_two_live_side_by_side(town: Scratch, place: Path) -> None:
    HANDS.type(f"moorage up {place} --nodes 1 --hypervisor sim")
    other = devcluster.read(place)
    assert other.network != town.network
    first, second = (typist(**one.environment()) for one in (town, other))
    second.type("gnt-disk add -t sharedfile -s 8M mine")
    assert len(first.ask("gnt-node list -o name")) == 2
    assert first.ask("gnt-disk list -o name") == []
    HANDS.type(f"moorage down {place}")
    assert first.type("gnt-cluster verify").endswith("* No problem found\n")


@pytest.mark.parametrize("name", ["with space", "'q' & \"r\" $x", "ä"])
def test_a_place_may_have_any_name(tmp_path: Path, name: str) -> None:
    at = tmp_path / name
    run = [BIN / "moorage", "up", at, "--nodes", "1", "--hypervisor", "sim"]
    try:
        subprocess.run(run, check=True, capture_output=True)
        script = 'eval "$("$0" env "$1")"; gnt-node list --no-headers -o name'
        ask = ["sh", "-c", script, BIN / "moorage", at]
        told = subprocess.run(ask, check=True, capture_output=True, text=True)
        assert told.stdout.split() == ["node1"]
        settings = at / "extstorage/qsd/etc/settings.sh"
        ask = ["sh", "-c", '. "$0"; printf %s "$IMAGE_DIR"', settings]
        told = subprocess.run(ask, check=True, capture_output=True, text=True)
        assert told.stdout == f"{at}/shared/qsd"
    finally:
        devcluster.down(at)
    assert left(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--hypervisor xen", "xen"),
        ("--hypervisor sim --nodes 0", "1 to 200 nodes, not 0"),
        ("--hypervisor sim --nodes 201", "1 to 200 nodes, not 201"),
        ("--hypervisor sim --nodes -1", "-1"),
        ("--hypervisor sim --nodes many", "a number of nodes was expected, not 'many'"),
    ],
)
def test_a_slip_makes_nothing(place: Path, options: str, sentence: str) -> None:
    assert sentence in refused(f"moorage up {place} {options}")
    assert not place.exists()


def test_a_directory_in_use_is_left_alone(place: Path) -> None:
    place.mkdir()
    (place / "thesis.tex").write_text("ten years")
    said = refused(f"moorage up {place} --hypervisor sim")
    assert f"{place} is not empty" in said
    for word in ("down", "env"):
        told = refused(f"moorage {word} {place}")
        assert f"there is no scratch cluster in {place}" in told
    assert (place / "thesis.tex").read_text() == "ten years"
    assert list(place.iterdir()) == [place / "thesis.tex"]


def test_a_place_that_cannot_be_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for at in (tmp_path / "file", tmp_path / "file" / "c", Path("/proc/c")):
        assert f"{at}" in refused(f"moorage up {at} --hypervisor sim")
        assert "there is no scratch cluster" in refused(f"moorage down {at}")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_place_that_is_too_deep_is_one_sentence(tmp_path: Path) -> None:
    at = tmp_path / ("x" * 100)
    said = refused(f"moorage up {at} --hypervisor sim")
    assert "too long" in said
    assert not at.exists()
    assert left(tmp_path) == []


@pytest.mark.parametrize("what", ["{}", "no json", "[]", '{"root": "/"}'])
def test_down_ends_nothing_by_a_note_that_is_garbled(place: Path, what: str) -> None:
    place.mkdir()
    (place / "scratch.json").write_text(what)
    assert f"{place}/scratch.json" in refused(f"moorage down {place}")
    assert [path.name for path in place.iterdir()] == ["scratch.json"]
    (place / "scratch.json").unlink()


def test_down_of_a_copy_spares_the_cluster(town: Scratch, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy(town.path / "scratch.json", copy)
    said = refused(f"moorage down {copy}")
    assert f"is that of the cluster in {town.root}" in said
    assert typist(**town.environment()).ask("gnt-node list -o name")


def test_down_by_another_path_to_the_same_place(place: Path, tmp_path: Path) -> None:
    HANDS.type(f"moorage up {place} --nodes 1 --hypervisor sim --bare")
    link = tmp_path / "link"
    link.symlink_to(place)
    HANDS.type(f"moorage down {link}")
    assert left(tmp_path) == []
    assert not place.exists()


def test_agents_that_cannot_start_leave_nothing(place: Path) -> None:
    network = devcluster._network(place)
    with socket.socket() as taken:
        taken.bind((f"{network}.3", devcluster.PORT))
        taken.listen()
        said = refused(f"moorage up {place} --hypervisor sim")
    assert "node3" in said
    assert (
        f"cannot listen at {network}.3:{devcluster.PORT}: Address already in use"
        in said
    )
    assert left(place) == []
    assert not place.exists()


def test_a_network_that_is_taken_is_passed_over(place: Path) -> None:
    network = devcluster._network(place)
    with socket.socket() as taken:
        taken.bind((f"{network}.1", devcluster.PORT))
        taken.listen()
        HANDS.type(f"moorage up {place} --nodes 1 --hypervisor sim --bare")
    assert devcluster.read(place).network != network


def killed(pid_file: Path) -> None:
    pid = int(pid_file.read_text())
    os.kill(pid, signal.SIGKILL)
    assert process.wait_until(lambda: not process.alive(pid), 60)


def test_an_agent_that_was_killed_serves_again(town: Scratch) -> None:
    hands = typist(**town.environment())
    hands.type("gnt-instance add -t diskless -n node1 --no-nics web1")
    hands.type("gnt-disk add -t sharedfile -s 8M first")
    hands.type("gnt-disk attach first web1")
    uuid = hands.ask("gnt-disk info first")[0]["uuid"]
    fences = town.node("node1").run / "fence"
    before = {path.name: path.read_text() for path in fences.iterdir()}
    assert set(before) >= {"term", f"disk-{uuid}"}
    killed(town.node("node1").pid)
    devcluster.start_agent(town, "node1")
    hands.type("gnt-disk detach first")
    hands.type("gnt-disk remove -f first")
    hands.type("gnt-instance remove -f web1")
    after = {path.name: path.read_text() for path in fences.iterdir()}
    assert before.items() <= after.items()
    assert hands.type("gnt-cluster verify").endswith("* No problem found\n")


def test_an_agent_that_people_start_tells_its_number(town: Scratch) -> None:
    """So that what the docs type to kill it works a second time."""
    node = town.node("node2")
    killed(node.pid)
    node.serving.unlink()
    pid = process.spawn(["agent", str(node.root)], node.log)
    assert process.wait_until(node.serving.exists, 60)
    assert int(node.pid.read_text()) == pid
    assert devcluster.start_agent(town, "node2") == pid


def test_an_agent_that_runs_is_not_started_twice(town: Scratch) -> None:
    pid = int(town.node("node2").pid.read_text())
    assert devcluster.start_agent(town, "node2") == pid
    assert int(town.node("node2").pid.read_text()) == pid
    assert process.alive(pid)


def test_an_agent_killed_at_its_door_opens_another(place: Path) -> None:
    HANDS.type(f"moorage up {place} --nodes 1 --hypervisor sim --bare")
    bare = devcluster.read(place)
    hands = typist(**bare.environment())
    old = devcluster.token(bare, "node1")
    killed(bare.node("node1").pid)
    devcluster.start_agent(bare, "node1")
    said = refused(f"gnt-cluster init --token {old} demo", hands)
    assert "does not open its door" in said
    hands.type("gnt-cluster init demo")
    assert hands.ask("gnt-node list -o name") == [{"name": "node1"}]


def test_the_master_starts_and_stops(town: Scratch) -> None:
    hands = typist(**town.environment())
    pid = int(town.master.pid.read_text())
    assert hands.type("moorage master start") == f"The master is up, process {pid}\n"
    assert hands.type("moorage master stop") == "The master is stopped\n"
    assert hands.type("moorage master stop") == "No master runs\n"
    assert "no master listens" in refused("gnt-node list", hands)
    hands.type("moorage master start")
    assert len(hands.ask("gnt-node list -o name")) == 2
    said = refused("moorage master dance", hands)
    assert "the master can be run, started, stopped or checked, be one" in said
    assert "not 'dance'" in said


def test_a_second_master_is_refused_while_the_first_serves(town: Scratch) -> None:
    hands = typist(**town.environment())
    before = hands.ask("gnt-node list -o name")
    said = refused("moorage master run", hands)
    assert "a master serves" in said
    assert hands.ask("gnt-node list -o name") == before
    hands.type("gnt-disk add -t sharedfile -s 8M still")
    hands.type("gnt-disk remove -f still")


def test_daemons_without_a_place_are_one_sentence(tmp_path: Path) -> None:
    assert f"there is no directory {tmp_path}/no" in refused(
        f"moorage agent {tmp_path}/no"
    )
    for word in ("run", "start"):
        said = refused(f"moorage master {word} --dir {tmp_path}")
        assert f"there is no cluster in {tmp_path}" in said
        assert "gnt-cluster getmaster tells" in said
    assert list(tmp_path.iterdir()) == []


# -- nobody needs root ---------------------------------------------------------------


def as_nobody(home: Path) -> list[str]:
    """Return the words that run a command without root's rights.

    Where nobody may read the interpreter, a user namespace takes the name and the
    capabilities away.
    """
    if os.geteuid():
        return []
    ways = (
        ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"],
        ["unshare", "--user"],
    )
    for way in ways:
        run = [*way, "env", f"HOME={home}"]
        ask = [*run, BIN / "moorage", "--help"]
        if not subprocess.run(ask, capture_output=True, check=False).returncode:
            if way[0] == "setpriv":
                shutil.chown(home, "nobody")
            return run
    raise AssertionError("there is no way to run a command without root's rights")


@pytest.fixture
def without_root() -> Iterator[Callable[[str], str]]:
    """Type commands as nobody, in a directory of nobody's own."""
    home = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    prefix = as_nobody(home)

    def run(line: str) -> str:
        words = [*prefix, *line.format(home=home).split()]
        words[len(prefix)] = str(BIN / words[len(prefix)])
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, cwd=home, timeout=600
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    try:
        yield run
    finally:
        for note in home.glob("*/scratch.json"):
            devcluster.down(note.parent)
        assert left(home) == []
        shutil.rmtree(home)


def test_the_tour_on_simulated_nodes_needs_no_root(
    without_root: Callable[[str], str],
) -> None:
    told = without_root("moorage tour {home}/t --sim")
    assert "All 11 steps hold" in told
    assert "nothing was changed" in told  # a second owner was refused
    for number, step in enumerate(STEPS, start=1):
        title = (step.__doc__ or "").splitlines()[0].rstrip(".")
        assert f"\n{number:3}. {title}\n" in told
    without_root("moorage down {home}/t")


def test_a_file_is_no_place_for_a_cluster(tmp_path):
    place = tmp_path / "file"
    place.write_text("mine")
    said = HANDS.refused(f"moorage up {place} --hypervisor sim")
    assert "is a file, and no directory" in said
    assert place.read_text() == "mine"
