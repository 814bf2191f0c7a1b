# SPDX-License-Identifier: BSD-2-Clause
"""The steps of the tour. Each one types commands, looks, and claims.

A step returns what it proves, in one sentence with the figures that it saw.
"""

import json
import os
import signal
from pathlib import Path
from typing import Any

from moorage.client import ENDED
from moorage.daemons import devcluster as scratches
from moorage.daemons.process import alive

from .claims import claim
from .stage import Stage

KERNEL = "kvm:kernel_path={0}/vmlinuz,initrd_path={0}/initrd.gz"


def a_cluster(at: Stage) -> str:
    """Make a cluster of three nodes, from three agents that wait to be let in."""
    settings = scratches.cluster_settings(at.scratch)
    shared, local = settings["shared_file_storage_dir"], settings["file_storage_dir"]
    at.typist.type(
        f"gnt-cluster init --shared-file-storage-dir={shared}"
        f" --file-storage-dir={local}"
        " -B memory=160 --node-name node1 tour"
    )
    for name in at.scratch.names[1:]:
        at.typist.type(f"gnt-node add {name}")
    at.typist.type("gnt-node list")
    at.typist.type("gnt-group list")
    used = (at.device_provider, at.user_provider)
    told = at.typist.type(f"gnt-storage diagnose {' '.join(used)}")
    for provider in used:
        section = told.partition(f"Provider: {provider}\n")[2].partition("Provider:")[0]
        claim("--> valid" in section, f"provider {provider} is not valid")
        claim("invalid" not in section, f"provider {provider} is invalid somewhere")
    return "three agents joined, each with its own certificate; the providers are valid"


def two_instances(at: Stage) -> str:
    """Add an instance with disks of two templates, and one without disks."""
    at.typist.type(
        "gnt-instance add -t sharedfile --disk 0:size=64M"
        f" --disk 1:size=64M,dev_type=ext,provider={at.device_provider},name=scratch1"
        " -o tiny -n node1 --no-nics web1"
    )
    kernel = f" -H {KERNEL.format(at.scratch.guest)}" if at.scratch.guest else ""
    at.typist.type(f"gnt-instance add -t diskless -n node2 --no-nics{kernel} web2")
    at.typist.type("gnt-instance list -o +disk_template")
    if not at.simulated:
        at.typist.say(f"guests are executed by {at.accelerator()}")
    greetings = {name: at.inside(name).greet() for name in ("web1", "web2")}
    for name, greeting in greetings.items():
        at.typist.say(f"{name} answers: {greeting}")
    return "web1 has disks of two templates, web2 has none; both guests answer"


def a_disk_of_its_own(at: Stage) -> str:
    """Make a disk that belongs to nobody, attach it hot, and write to it."""
    folder = Path(at.scratch.root) / "shared" / "elsewhere"
    own = f" -D dir={folder}" if not at.simulated else ""
    folder.mkdir(exist_ok=True)
    at.typist.type(
        f"gnt-disk add -t ext -s 128M --provider {at.user_provider}{own} data1"
    )
    at.typist.type("gnt-disk list")
    claim(at.disk("data1")["status"] == "detached", "data1 is not detached")
    at.typist.type("gnt-disk attach data1 web1")
    disk = at.disk("data1")
    at.notes["data1"] = disk["uuid"]
    at.notes["sum"] = at.inside("web1").fill(disk["uuid"])
    at.typist.say(f"web1 wrote a file system and a file: {at.notes['sum'][:16]}…")
    _check_userspace(at)
    return "a disk without an owner became a running guest's, through a URI alone"


def _check_userspace(at: Stage) -> None:
    info = at.typist.look("gnt-instance info web1")
    section = info.partition("disk/2: ext")[2]
    claim("kvm:" in section, "data1 is not reached through a kvm: URI")
    line = next(line for line in section.splitlines() if "on primary" in line)
    claim("/dev/" not in line, f"data1 has a device: {line.strip()}")
    at.typist.say(f"web1 reaches it {line.strip()}")


def it_moves(at: Stage) -> str:
    """Detach it hot, attach it to the other guest on another node, compare."""
    at.typist.type("gnt-disk detach data1")
    at.typist.type("gnt-disk attach data1 web2")
    seen = at.inside("web2").checksum(at.notes["data1"])
    at.typist.say(f"web2 on {at.home('web2')} reads: {seen[:16]}…")
    claim(seen == at.notes["sum"], f"the checksum is {seen}, not {at.notes['sum']}")
    said = at.typist.refused("gnt-disk attach data1 web1")
    claim("web2" in said, "the refusal does not say who has the disk")
    return "the same bytes on another node; a second owner is refused, by name"


def they_move(at: Stage) -> str:
    """Migrate both guests while they write."""
    downtimes = []
    second = at.disks_of("web1")[1]
    at.inside("web1").fill(second)
    for name, disk, target in (
        ("web1", second, "node3"),
        ("web2", at.notes["data1"], "node1"),
    ):
        at.inside(name).start_writing(disk)
        job = _job(at, f"gnt-instance migrate -f -n {target} --json {name}")
        claim(at.home(name) == target, f"{name} is on {at.home(name)}, not {target}")
        lines = at.inside(name).stop_writing(disk)
        claim(lines > 0, f"{name} wrote nothing")
        at.typist.say(
            f"{name}: {job['total_ms']} ms in all, {job['downtime_ms']} ms down; "
            f"{lines} lines written, none missing"
        )
        downtimes.append(job["downtime_ms"])
    at.typist.type("gnt-cluster verify")
    kept = at.inside("web2").checksum(at.notes["data1"])
    claim(kept == at.notes["sum"] or at.simulated, "data1 changed while it moved")
    return f"no byte was lost; the guests stood still for {_and(downtimes)} ms"


def _job(at: Stage, line: str) -> dict[str, Any]:
    """Type a command that reports its job as JSON; return the first result."""
    told = json.loads(at.typist.type(line))
    found = told["result"]
    claim(isinstance(found, dict), f"the job says nothing of the transfer: {told}")
    return dict(found)


def _and(numbers: list[int]) -> str:
    return " and ".join(map(str, numbers))


def they_ping(at: Stage) -> str:
    """Give both guests a network card, and let one ping the other while it migrates."""
    with at.bridge() as bridge:
        at.typist.type("gnt-network add --network=198.51.100.0/24 lan")
        at.typist.type(f"gnt-network connect -N mode=bridged,link={bridge} lan default")
        ips = {}
        for name in ("web1", "web2"):
            at.typist.type(f"gnt-instance modify --net add:network=lan,ip=pool {name}")
            (row,) = at.typist.ask(f"gnt-instance list -o nic.ip/0 {name}")
            ips[name] = str(row["nic.ip/0"])
            at.inside(name).take_address(ips[name])
        at.inside("web1").start_pinging(ips["web2"])
        at.typist.type("gnt-instance migrate -f -n node2 web2")
        sent, back = at.inside("web1").stop_pinging()
        at.typist.say(f"web1 sent web2 {sent} packets, {back} came back")
        claim(back > 1 and sent - back <= _LOST, f"{back} of {sent} came back")
        for name in ips:
            at.typist.type(f"gnt-instance modify --net 0:remove {name}")
        at.typist.type("gnt-network disconnect lan")
        at.typist.type("gnt-network remove -f lan")
    return f"{back} of {sent} packets came back, although their target moved"


_LOST = 50
"""Packets that may get lost: ten seconds', for an emulated guest on a busy machine."""


def a_node_dies(at: Stage) -> str:
    """Pull a node's plug; fail over only when somebody has said that it is off."""
    at.typist.say("node3 loses power: kill -9 of all that runs on it")
    killed = at.lose_power("node3")
    said = at.typist.refused("gnt-instance failover -f -n node2 web1")
    hint = "gnt-node modify --offline=yes node3"
    claim(hint in said, f"the refusal does not say what to type: {said}")
    at.typist.type(hint)
    at.typist.type("gnt-instance failover -f -n node2 web1")
    claim(at.home("web1") == "node2", "web1 is not on node2")
    at.typist.say(f"web1 answers: {at.inside('web1').greet()}")
    return (
        f"{killed} processes died; failover waited for the word that the node is off, "
        "because two writers were possible"
    )


def it_grows(at: Stage) -> str:
    """Grow a disk online, and take a snapshot."""
    inside = at.inside("web2")
    at.typist.type("gnt-disk grow data1 64M")
    claim(at.disk("data1")["size"] == 192, "data1 does not have 192 MiB")
    uuid = at.notes["data1"]
    at.until(lambda: inside.size(uuid) == 192, 120, "the guest sees 192 MiB")
    at.typist.say(f"web2 sees {inside.size(uuid)} MiB")
    at.typist.type("gnt-disk snapshot data1 --name snap1")
    claim(at.disk("snap1")["status"] == "detached", "snap1 is not a disk of its own")
    return "the guest saw the new size while it ran; the snapshot is a disk of its own"


def the_master_dies(at: Stage) -> str:
    """Kill the master in the middle of an attach, and start it again."""
    at.typist.type(f"gnt-disk add -t ext -s 32M --provider {at.user_provider} data2")
    before = at.disk("data2")["instance"]
    pid = int(at.scratch.master.pid.read_text())
    with at.client() as client:
        attach = {"OP_ID": "OP_DISK_ATTACH", "disk": "data2", "instance_name": "web2"}
        job = client.submit(attach)
        seen: Any = [None, None]
        while not (seen[0] in ENDED or (seen[1] and seen[1]["done"])):
            change = client.change(job, ["status", "progress"], seen)
            seen = change.values if change else seen
    os.kill(pid, signal.SIGKILL)
    at.until(lambda: not alive(pid), 60, "the master is dead")
    at.typist.say(f"kill -9 of the master (process {pid}) in the middle of job {job}")
    at.typist.type("moorage master start")
    ended = _status(at, job)
    at.typist.type(f"gnt-job info {job}")
    after = at.disk("data2")["instance"]
    claim((ended == "success") == (after is not None), f"{ended}, but owner {after}")
    _check_plugged(at, owned=after is not None)
    at.check_volumes()
    at.typist.type("gnt-cluster verify")
    state = "after" if after else "before"
    return (
        f"the job ended as {ended}, in the state {state} it: the disk's owner was "
        f"{before or 'nobody'} and is {after or 'nobody'}; no volume is left behind"
    )


def _status(at: Stage, job: int) -> str:
    """Wait for the end of a job; return its status."""
    with at.client() as client:
        return client.wait(job).status


def _check_plugged(at: Stage, *, owned: bool) -> None:
    """Claim that the guest has the disk exactly if the configuration says so."""
    facts = at.typist.ask("gnt-cluster verify")
    claim(not facts["errors"], f"verify finds errors: {facts['errors']}")
    claim(owned == (at.disk("data2")["status"] == "attached"), "data2 is in between")


def it_ends(at: Stage) -> str:
    """Detach and remove the disk; the provider's script gets its parameters."""
    disk = at.disk("data1")
    volume = str(disk["logical_id"][-1])
    claim(volume in at.volumes(), f"volume {volume} is not there")
    at.typist.type("gnt-disk detach data1")
    at.typist.type("gnt-disk remove -f data1")
    claim(volume not in at.volumes(), f"volume {volume} is still there")
    at.check_volumes()
    if at.simulated:
        return "the simulated provider destroyed the volume"
    logs = list(Path(at.scratch.root).glob(f"node*/log/extstorage/remove-*{volume}*"))
    claim(logs, "no log of the script remove is there")
    folder = disk["params"]["dir"]
    return f"the script remove ran, with the disk's parameter dir={folder}"


def the_node_returns(at: Stage) -> str:
    """Bring the node back, so that the cluster is whole."""
    scratches.start_agent(at.scratch, "node3")
    at.typist.type("gnt-node modify --offline=no node3")
    at.typist.type("gnt-cluster verify")
    at.typist.type("gnt-instance list")
    at.typist.type("gnt-disk list")
    return "the cluster is whole again, and stays up"


STEPS = (
    a_cluster,
    two_instances,
    a_disk_of_its_own,
    it_moves,
    they_move,
    they_ping,
    a_node_dies,
    it_grows,
    the_master_dies,
    it_ends,
    the_node_returns,
)
