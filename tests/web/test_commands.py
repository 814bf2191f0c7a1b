# SPDX-License-Identifier: BSD-2-Clause
"""Each deed's command, typed at the command line, asks for what its form asks for."""

import asyncio

from desk import desk
from moorage.jobs.fields import fields
from moorage.ops import OPERATIONS, parse
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.web.deeds import DEEDS
from moorage.web.forms import given_of

WORDS = {
    "amount": "1G",
    "beparams.memory": "2G",
    "beparams.vcpus": "2",
    "disk": "data1",
    "disk_template": "ext",
    "disks.0.pool": "",
    "disks.0.provider": "san",
    "disks.0.size": "1G",
    "disks.1.pool": "",
    "disks.1.provider": "san",
    "disks.1.size": "2G",
    "instance_name": "web1",
    "name": "data2",
    "new_name": "other",
    "node": "node2",
    "os_type": "",
    "pnode": "node1",
    "pool": "",
    "provider": "san",
    "reboot_type": "full",
    "remote_node": "node2",
    "size": "1G",
    "tags": "--from=gold",
    "target_node": "node2",
    "timeout": "30",
}
"""What is filled in; a switch is on."""
ON = {
    "instance": "web1",
    "disk": "data1",
    "node": "node1",
    "group": "default",
    "network": "lan",
    "pool": "fast",
}


def filled(deed):
    """Return all fields of a form, as the browser sends them, and as the opcode."""
    deed = deed.with_rows(2)
    known = {one.name: one for one in fields(OPERATIONS[deed.op])}
    words = {one.called: [WORDS.get(one.called, "on")] for one in deed.inputs}
    return deed, words, given_of(deed, known, words)


async def test_the_command_asks_for_the_same(tmp_path):
    """One cluster for all: no job begins, so each finds it as it was made."""
    cluster = await SimCluster.start(
        tmp_path / "sim", ClusterBuilder().disk("data1").instance("web1")
    )
    never = asyncio.Event()
    cluster.extra_point = lambda _name: never.wait()
    async with desk(cluster, tmp_path) as at:
        for deed, words, values in map(filled, DEEDS):
            line = deed.typed(ON[deed.kind], words)
            before = set(cluster.engine.jobs)
            await at.screen(line.replace(deed.command, f"{deed.command} --submit", 1))
            made = [job for at, job in cluster.engine.jobs.items() if at not in before]
            # An evacuation's own jobs come when they come.
            (sent,) = [op for job in made if (op := asked(job))["OP_ID"] == deed.op]
            wanted = deed.opcode(ON[deed.kind], values)
            assert parse(common(sent)) == parse(common(wanted)), (line, sent)
    await cluster.stop()


def asked(job):
    return dict(job.ops[0].input)


def common(opcode):
    """Return an opcode without who asks, and without what says what is so anyway."""
    found = {key: value for key, value in opcode.items() if key != "reason"}
    sizes = dict(found.get("beparams", {}))
    if "memory" in sizes:  # the older word for both
        sizes |= dict.fromkeys(("minmem", "maxmem"), sizes.pop("memory"))
    return found | ({"beparams": sizes} if sizes else {})
