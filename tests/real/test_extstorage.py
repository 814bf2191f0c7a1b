# SPDX-License-Identifier: BSD-2-Clause
"""What the scripts of an ExtStorage provider are told, and when: with real guests.

Providers are made here: a few lines of shell that write down each call. One has all
ten scripts and userspace access only; one has the first seven, and one block device
that all nodes see, as an old provider for a SAN has.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.real

SEVEN = ("create", "attach", "detach", "remove", "grow", "setinfo", "verify")
TEN = (*SEVEN, "snapshot", "open", "close")
NOTE = """#!/bin/sh
# Writes down how it was called; fails with the words in fail/ACTION, if they are there.
. etc/settings.sh
action=${0##*/}
told=$(mktemp "$TOP/.call-XXXXXX")
{ printf '%s\\0' "$action" "$#" "$PWD"; cat /proc/self/environ; } > "$told"
mv "$told" "$TOP/calls/$(date +%s%N)-$action"
if [ -e "$TOP/fail/$action" ]; then cat "$TOP/fail/$action" >&2; exit 3; fi
image=$TOP/images/$VOL_NAME
"""
USERSPACE = """case $action in
create) truncate -s "${VOL_SIZE}M" "$image" ;;
attach) printf '\\nxen-pvm:phy:/dev/none\\nKVM:file:%s\\nkvm:file:/nowhere' "$image" ;;
grow) truncate -s "${VOL_NEW_SIZE}M" "$image" ;;
snapshot) cp --sparse=always "$image" "$TOP/images/$VOL_SNAPSHOT_NAME" ;;
remove) rm -f "$image" ;;
esac
"""
DEVICE = """device() { losetup -n -O NAME -j "$image"; }
case $action in
create) truncate -s "${VOL_SIZE}M" "$image" && losetup -f "$image" ;;
attach) printf %s "$(device)" ;;
grow) truncate -s "${VOL_NEW_SIZE}M" "$image" && losetup -c "$(device)" ;;
remove) [ -z "$(device)" ] || losetup -d "$(device)"; rm -f "$image" ;;
esac
"""
LIST = "tier how fast it is\ncolour\nusp_* anything\n"
SHELL = {"PWD", "OLDPWD", "SHLVL", "_"}
"""What a shell adds by itself."""


@dataclass(frozen=True)
class Called:
    """One call of a script: its name, number of arguments, directory, environment."""

    action: str
    argc: int
    cwd: str
    env: dict[str, str]

    def __str__(self) -> str:
        alone = self.env.get("VOL_OPEN_EXCLUSIVE")
        return " ".join(filter(None, (self.env["VOL_NODE"], self.action, alone)))


class Provider:
    """A provider that writes down how it is called."""

    def __init__(self, town: Any, name: str, scripts: tuple[str, ...], body: str):
        self.name = name
        self.home = town.path / "extstorage" / name
        self.top = town.path / f"top-{name}"
        for part in ("calls", "fail", "images"):
            (self.top / part).mkdir(parents=True)
        (self.home / "etc").mkdir(parents=True)
        (self.home / "etc" / "settings.sh").write_text(f"TOP='{self.top}'\n")
        (self.home / "parameters.list").write_text(LIST)
        for script in scripts:
            (self.home / script).write_text(NOTE + body)
            (self.home / script).chmod(0o755)

    def calls(self) -> list[Called]:
        """Return the calls since the last look."""
        found = []
        for path in sorted((self.top / "calls").iterdir()):
            action, argc, cwd, *rest = path.read_text().rstrip("\0").split("\0")
            env = dict(one.split("=", 1) for one in rest)
            found.append(Called(action, int(argc), cwd, env))
            path.unlink()
        return found

    def fail(self, action: str, words: str) -> None:
        (self.top / "fail" / action).write_text(words)

    def mend(self) -> None:
        for path in (self.top / "fail").iterdir():
            path.unlink()

    @property
    def images(self) -> set[str]:
        return {path.name for path in (self.top / "images").iterdir()}


@pytest.fixture(scope="module")
def both(town: Any) -> Iterator[tuple[Any, Provider, Provider]]:
    """The town with two more providers and two guests, ``ext1`` and ``ext2``."""
    rec = Provider(town, "rec10", TEN, USERSPACE)
    old = Provider(town, "rec7", SEVEN, DEVICE)
    town.guest("ext1", "node1")
    town.guest("ext2", "node2")
    yield town, rec, old
    for name in ("ext1", "ext2"):
        town.type(f"gnt-instance remove -f --shutdown-timeout 0 {name}")
    assert rec.images | old.images == set()
    for one in (rec, old):
        shutil.rmtree(one.home)
        shutil.rmtree(one.top)
    assert town.healthy()


@pytest.fixture
def rec(both: Any) -> Iterator[Provider]:
    yield from quiet(both[0], both[1])


@pytest.fixture
def old(both: Any) -> Iterator[Provider]:
    yield from quiet(both[0], both[2])


def quiet(town: Any, provider: Provider) -> Iterator[Provider]:
    """Yield a provider without disks and calls, and clean up behind the test."""
    provider.calls()
    yield provider
    provider.mend()
    for row in town.ask("gnt-disk list -o uuid,instance,provider"):
        if row["provider"] == provider.name:
            if row["instance"]:
                town.type(f"gnt-disk detach {row['uuid']}")
            town.type(f"gnt-disk remove -f {row['uuid']}")
    assert provider.images == set()


def add(town: Any, provider: Provider, name: str, more: str = "") -> dict[str, Any]:
    town.type(f"gnt-disk add -t ext -p {provider.name} -s 32M {more} {name}")
    return dict(town.ask(f"gnt-disk info {name}")[0])


def names(calls: list[Called]) -> list[str]:
    return [str(call) for call in calls]


def only(calls: list[Called], action: str) -> Called:
    (found,) = (call for call in calls if call.action == action)
    return found


COMMON = {
    "PATH",
    "LC_ALL",
    "VOL_NAME",
    "VOL_UUID",
    "VOL_CNAME",
    "VOL_EPOCH",
    "VOL_NODE",
    "VOL_OPEN",
    "VOL_PROGRESS",
}
EXTP = {"EXTP_PROVIDER", "EXTP_ACCESS", "EXTP_TIER", "EXTP_COLOUR"}
OWN = {
    "create": {"VOL_SIZE"},
    "grow": {"VOL_SIZE", "VOL_NEW_SIZE"},
    "setinfo": {"VOL_METADATA"},
    "snapshot": {"VOL_SNAPSHOT_NAME", "VOL_SNAPSHOT_SIZE"},
    "open": {"VOL_OPEN_EXCLUSIVE"},
}
"""What one action has and no other."""


@pytest.mark.requirement(
    *("S0-25", "S0-26", "S0-27", "S0-28", "S0-29", "S0-30", "S0-32", "S0-33", "S0-34"),
    *("S0-35", "S0-36", "S0-37", "S0-38", "S0-39", "S0-40", "S0-41", "S0-42", "S0-43"),
    *("S0-44", "S0-45", "S0-46", "S0-47", "S0-48", "S0-49", "S0-55", "S0-56", "S0-57"),
    *("S0-60", "S0-61"),
)
def test_what_every_script_is_told(both: Any, rec: Provider) -> None:
    town = both[0]
    more = r"access=userspace,tier=fast,colour=a\,b=c"
    town.type(
        "gnt-instance modify --disk"
        f" '-1:add,size=32M,dev_type=ext,provider=rec10,name=told,{more}' ext1"
    )
    disk = town.stage.disk("told")
    town.type("gnt-disk grow told 16M")
    town.type("gnt-disk snapshot told --name told-then")
    for node in ("node3", "node1"):
        town.type(f"gnt-instance migrate -f -n {node} ext1")
    town.type("gnt-disk detach told")
    made = rec.calls()
    town.type("gnt-disk remove -f told")
    removal = rec.calls()
    calls = made + removal
    assert {call.action for call in calls} >= set(TEN)
    volume = disk["logical_id"][1]
    for call in calls:
        # Ganeti's manual page promises this one argument, to this one script.
        assert call.argc == (1 if call.action == "verify" else 0), call
        assert call.cwd == str(rec.home), call
        if call.env["VOL_UUID"] != disk["uuid"]:
            continue  # the snapshot, a disk of its own
        expected = COMMON | EXTP | OWN.get(call.action, set())
        assert call.env.keys() - SHELL == expected, call
        assert call.env["VOL_NAME"] == volume
        assert call.env["VOL_CNAME"] == "told"
        assert call.env["EXTP_PROVIDER"] == "rec10"
        assert call.env["EXTP_ACCESS"] == "userspace"
        assert (call.env["EXTP_TIER"], call.env["EXTP_COLOUR"]) == ("fast", "a,b=c")
    assert only(calls, "create").env["VOL_SIZE"] == "32"
    grown = only(calls, "grow").env
    assert (grown["VOL_SIZE"], grown["VOL_NEW_SIZE"]) == ("32", "48")
    assert only(calls, "setinfo").env["VOL_METADATA"] == "originstname+ext1"
    taken = only(calls, "snapshot").env
    (snap,) = town.ask("gnt-disk info told-then")
    assert taken["VOL_SNAPSHOT_NAME"] == snap["logical_id"][1]
    assert taken["VOL_SNAPSHOT_SIZE"] == "48"
    assert names(removal)[-1].endswith(" remove")


@pytest.mark.requirement("S0-49", "S0-55", "S0-56", "S0-57")
def test_the_order_of_the_scripts(both: Any, rec: Provider) -> None:
    town = both[0]
    add(town, rec, "order")
    made = [call.action for call in rec.calls()]
    assert made == ["verify", "create", "attach", "open", "setinfo", "detach"]
    town.type("gnt-disk attach order ext1")
    assert names(rec.calls()) == ["node1 attach", "node1 open True"]
    kept = town.write("ext1", town.uuid("order"))
    town.type("gnt-instance migrate -f -n node3 ext1")
    assert names(rec.calls()) == [
        "node1 open False",
        "node3 attach",
        "node3 open False",
        "node1 close",
        "node3 attach",  # idempotent: where it is may depend on how it is open
        "node3 open True",
        "node1 detach",
    ]
    assert town.checksum("ext1", town.uuid("order")) == kept
    town.type("gnt-instance failover -f --shutdown-timeout 0 -n node1 ext1")
    assert names(rec.calls()) == [
        "node3 close",
        "node3 detach",
        "node1 attach",
        "node1 open True",
    ]
    assert town.checksum("ext1", town.uuid("order")) == kept
    town.type("gnt-disk detach order")
    assert names(rec.calls()) == ["node1 detach"]


@pytest.mark.requirement("S0-38", "S3-01")
def test_the_name_of_a_volume_stays(both: Any, rec: Provider) -> None:
    town = both[0]
    volume = add(town, rec, "stays")["logical_id"][1]
    town.type("gnt-disk attach stays ext1")
    town.type(
        "gnt-instance modify --disk"
        " 0:add,size=8M,dev_type=ext,provider=rec10,name=front"
        " ext1"
    )
    town.type("gnt-instance modify --disk stays:detach ext1")
    town.type("gnt-disk rename stays renamed")
    town.type("gnt-disk attach renamed ext2")
    calls = [call.env for call in rec.calls()]
    mine = [env for env in calls if env.get("VOL_CNAME") in ("stays", "renamed")]
    assert {env["VOL_NAME"] for env in mine} == {volume}
    assert {env["VOL_CNAME"] for env in mine} == {"stays"}
    assert volume in rec.images


@pytest.mark.requirement("S0-65", "S0-67", "S0-68", "S0-69", "S0-70", "S0-74")
def test_the_guest_gets_the_uri_of_its_hypervisor(both: Any, rec: Provider) -> None:
    """Of several lines the first that says kvm counts, in any case of letters."""
    town = both[0]
    disk = add(town, rec, "uri", "--access userspace")
    image = rec.top / "images" / disk["logical_id"][1]
    town.type("gnt-disk attach uri ext1")
    info = town.look("gnt-instance info ext1")
    (line,) = (one for one in info.splitlines() if "on primary:" in one)
    assert f" kvm:file:{image}" in line
    assert "/nowhere" not in line
    town.inside("ext1", f"echo here > {town.device('ext1', disk['uuid'])}; sync")
    assert image.read_bytes()[:5] == b"here\n"
    info = json.loads(town.look("gnt-instance info --json ext1"))
    assert info[0]["disks"][0]["held"]["path"] is None


# -- providers of the first interface --------------------------------------------------


@pytest.mark.requirement("S0-33", "S0-34", "S0-53", "S0-66", "S3-01")
def test_seven_scripts_are_enough(both: Any, old: Provider) -> None:
    town = both[0]
    told = town.type("gnt-storage diagnose")
    section = told.partition("Provider: rec7\n")[2].partition("Provider:")[0]
    assert "--> valid" in section
    disk = add(town, old, "seven")
    town.type("gnt-disk attach seven ext1")
    kept = town.write("ext1", disk["uuid"])
    town.type("gnt-disk grow seven 16M")
    town.stage.until(lambda: town.size("ext1", disk["uuid"]) == 48, 10, "48 MiB")
    town.type("gnt-instance migrate -f -n node2 ext1")
    assert town.checksum("ext1", disk["uuid"]) == kept
    town.type("gnt-instance failover -f --shutdown-timeout 0 -n node1 ext1")
    assert town.checksum("ext1", disk["uuid"]) == kept
    town.type("gnt-disk detach seven")
    town.type("gnt-disk attach seven ext2")
    assert town.checksum("ext2", disk["uuid"]) == kept
    seen = names(old.calls())
    assert {line.split()[1] for line in seen} == {
        *("verify", "create", "attach", "setinfo", "grow", "detach")
    }
    said = town.refused("gnt-disk snapshot seven --name never")
    assert "'rec7' takes no snapshots" in said
    log = (town.scratch.node("node1").log).read_text()
    assert "'rec7' has no script 'open': skipped for disk seven" in log
    town.type("gnt-disk detach seven")
    town.type("gnt-disk remove -f seven")
    assert names(old.calls())[-1].endswith(" remove")


@pytest.mark.requirement("S0-71")
def test_a_provider_without_uris_has_no_userspace_access(
    both: Any, old: Provider
) -> None:
    town = both[0]
    add = f"gnt-disk add -t ext -p {old.name} -s 32M --access userspace nouri"
    said = town.refused(add)
    assert (
        "Userspace access is not supported by the 'rec7' ExtStorage provider for the "
        "'kvm' hypervisor"
    ) in said
    assert {"name": "nouri"} not in town.ask("gnt-disk list -o name")
    assert town.serials("ext1") == set()


# -- scripts that fail -----------------------------------------------------------------


@pytest.mark.requirement("S0-50", "S0-52")
@pytest.mark.parametrize("action", ["create", "attach", "open", "grow", "snapshot"])
def test_a_script_that_fails_is_quoted(both: Any, rec: Provider, action: str) -> None:
    town = both[0]
    if action != "create":
        add(town, rec, "breaks")
    if action in ("grow", "snapshot"):
        town.type("gnt-disk attach breaks ext1")
    words = [f"line {number} of 25" for number in range(1, 26)]
    rec.fail(action, "\n".join(words) + "\n")
    images = rec.images
    line = {
        "create": "gnt-disk add -t ext -p rec10 -s 32M breaks",
        "attach": "gnt-disk attach breaks ext1",
        "open": "gnt-disk attach breaks ext1",
        "grow": "gnt-disk grow breaks 16M",
        "snapshot": "gnt-disk snapshot breaks --name then",
    }[action]
    said = town.refused(line)
    title = f"External storage's {action} script failed (exited with exit code 3)"
    assert f"{title}, last lines of output:" in said
    assert "line 6 of 25" in said
    assert "line 25 of 25" in said
    assert "line 5 of 25" not in said.replace("line 25 of 25", "")
    assert rec.images == images
    rec.mend()
    found = town.ask("gnt-disk list -o name,instance,size,quarantine")
    mine = [row for row in found if row["name"] in ("breaks", "then")]
    if action == "create":
        assert mine == []
        return
    assert [row["name"] for row in mine] == ["breaks"]
    assert mine[0]["size"] == 32
    assert mine[0]["quarantine"] is None
    owner = "ext1" if action in ("grow", "snapshot") else None
    assert mine[0]["instance"] == owner
    town.type(line)  # the same command again, when the storage works again
    if action == "snapshot":
        town.type("gnt-disk remove -f then")


@pytest.mark.requirement("S0-26", "S0-50")
def test_a_removal_that_fails_forgets_nothing(both: Any, rec: Provider) -> None:
    town = both[0]
    disk = add(town, rec, "stuck")
    rec.fail("remove", "the array is busy\n")
    said = town.refused("gnt-disk remove -f stuck")
    assert "the array is busy" in said
    (row,) = town.ask("gnt-disk info stuck")
    assert row["uuid"] == disk["uuid"]
    assert disk["logical_id"][1] in rec.images
    rec.mend()
    town.type("gnt-disk remove -f stuck")
    assert rec.images == set()


@pytest.mark.requirement("S0-51", "S0-73")
@pytest.mark.parametrize(
    ("printed", "sentence"),
    [
        ("", "printed neither a device nor a URI"),
        ("/dev/null", "/dev/null is not a block device"),
        ("/dev/disk/none", "/dev/disk/none is not a block device"),
        ("\\nkvm:", "printed an empty URI for hypervisor 'kvm'"),
        ("please wait\\n/dev/loop0", "please wait is not a block device"),
    ],
)
def test_what_attach_prints_must_be_a_place(
    both: Any, rec: Provider, printed: str, sentence: str
) -> None:
    town = both[0]
    add(town, rec, "odd")
    script = rec.home / "attach"
    whole = script.read_text()
    try:
        script.write_text(f"#!/bin/sh\nprintf '{printed}'\n")
        said = town.refused("gnt-disk attach odd ext1")
    finally:
        script.write_text(whole)
    assert sentence in said
    assert town.stage.disk("odd")["instance"] is None
    assert town.serials("ext1") == set()


def test_a_provider_that_is_missing_somewhere(both: Any, rec: Provider) -> None:
    """A provider that lost a script is named, before anything is done."""
    town = both[0]
    script: Path = rec.home / "grow"
    script.chmod(0o644)
    try:
        said = town.refused("gnt-disk add -t ext -p rec10 -s 32M never")
        told = town.type("gnt-storage diagnose")
    finally:
        script.chmod(0o755)
    assert f"File 'grow' under path '{rec.home}' is not executable" in said
    section = told.partition("Provider: rec10\n")[2].partition("Provider:")[0]
    assert "invalid" in section
    assert rec.calls() == []
