# SPDX-License-Identifier: BSD-2-Clause
# ruff: noqa: S311 - repeatable draws, not secret
"""Random clusters with disks of all kinds: every question of room has one answer.

Volume groups, mirrored disks, exclusive storage, providers and shared files are in one
cluster. Its nodes are simulated, its master and socket are real, and so are the
programs: over LUXI, and over the file that hscan wrote. MOORAGE_CLUSTERS says how many
are tried, from the run's seed on.
"""

import json
import os
import re
from functools import partial
from random import Random

import pytest

from doors import Doors
from moorage.cli.htools import hail, hbal, hcheck, hscan, hspace
from moorage.model import Instance
from support.sampling import SEED

CLUSTERS = int(os.environ.get("MOORAGE_CLUSTERS") or 20)
MIRRORED = "drbd"
KINDS = ("plain", MIRRORED, "ext", "sharedfile", "file")
PROVIDER = {"provider": "san"}


class Kinds:
    """One random cluster.

    Parameters
    ----------
    doors
        Where it is asked.
    """

    def __init__(self, doors, seed, directory, capsys):
        self.doors, self.directory, self.capsys = doors, directory, capsys
        self.draw = draw = Random(seed)
        self.memory = draw.choice((9_000, 13_000, 18_000))
        self.size = draw.choice((500, 3_000, 9_000))
        self.exclusive = draw.random() < 0.4
        self.templates = tuple(draw.sample(KINDS, draw.randint(2, 5)))
        self.made, self.said_last = 0, ""
        for number in range(1, doors.nodes + 1):
            devices = {
                f"/dev/sd{at}": 10_000 * draw.randint(1, 2)
                for at in "abcd"[: draw.randint(1, 4)]
            }
            if self.exclusive:
                devices = dict.fromkeys(devices, 10_000)
            doors.cluster.nodes.san.groups[f"node{number} xenvg"] = {"devices": devices}
            machine = doors.cluster.nodes.nodes[f"node{number}"].machine
            machine.busy = partial(self.taken, f"node{number}")

    def taken(self, node):
        """Return the memory that is not free on a node: guests have touched it all."""
        config = self.doors.cluster.config
        here = [one for one in config.all(Instance) if one.admin_state == "up"]
        return 4096 + self.memory * sum(one.primary_node == node for one in here)

    def configure(self):
        """Give the cluster its settings."""
        spec = {
            "memory-size": self.memory,
            "cpu-count": 1,
            "disk-size": self.size,
            "disk-count": 1,
            "nic-count": 0,
            "spindle-use": 1,
        }
        most = spec | {"memory-size": 2 * self.memory, "cpu-count": 2, "disk-count": 4}
        least = spec | {"memory-size": 128, "disk-size": 1}
        bounds = [{"min": least, "max": most | {"disk-size": 2 * self.size + 2_000}}]
        fields = {
            "ipolicy": {"minmax": bounds, "std": spec},
            "enabled_disk_templates": list(self.templates),
        }
        if self.exclusive:
            fields["ndparams"] = {"exclusive_storage": True}
        done, why = self.doors.run("OP_CLUSTER_SET_PARAMS", **fields)
        assert done, why

    def disk(self, template, size=None):
        """Return a disk as an opcode has it."""
        found = {"size": size or self.size, "dev_type": template}
        found |= PROVIDER if template == "ext" else {}
        spindled = template == "plain" and self.exclusive
        return found | ({"spindles": 1} if spindled else {})

    def add(self, template, disks=None, **more):
        """Add an instance; return its nodes, None if it is refused."""
        self.made += 1
        fields = {
            "instance_name": f"i{self.made}",
            "disk_template": template,
            "disks": disks or [self.disk(template)],
            "beparams": {"memory": self.memory},
        } | more
        done, told = self.doors.run("OP_INSTANCE_CREATE", **fields)
        self.said_last = str(told)
        if not done:
            words = ("no node can take", "not supported with exclusive storage")
            refused = any(word in str(told) for word in words)
            assert refused or disks, told
            return None
        return self.doors.nodes_of(fields["instance_name"])

    def fill(self):
        """Add some instances, as somebody would who knows better."""
        for _ in range(self.draw.randint(0, 6)):
            kinds = self.draw.choices(self.templates, k=self.draw.choice((1, 1, 2)))
            disks = [self.disk(one, self.draw.choice((64, 2_000))) for one in kinds]
            more = {}
            if MIRRORED not in kinds and self.draw.random() < 0.4:
                node = self.draw.randint(1, self.doors.nodes)
                more = {"pnode": f"node{node}", "ignore_capacity": True}
            if self.draw.random() < 0.2:
                more["start"] = False
            self.add(kinds[0], disks, **more)

    def both(self, program, *more):
        """Return what a program says of the master, and of the file."""
        file = ("-t", str(self.directory / "LOCAL.data"))
        return self.told(program, *more), self.said(program, *file, *more)

    def scan(self):
        self.told(hscan, "-d", str(self.directory))

    def told(self, program, *more):
        return self.said(program, f"--luxi={self.doors.socket}", *more)

    def said(self, program, *words):
        self.capsys.readouterr()
        program.main(list(words))
        return self.capsys.readouterr().out

    def losses(self):
        """Return how many nodes cannot be lost, and lack memory for a failover."""
        words = ("--machine-readable", "--no-simulation")
        found = [
            tuple(
                int(re.search(rf"HCHECK_INIT_CLUSTER_{key}=(\d+)", out)[1])
                for key in ("GN1_FAIL", "N1_FAIL")
            )
            for out in self.both(hcheck, *words)
        ]
        assert found[0] == found[1]
        return found[0]

    def verified(self):
        """Return the same of verify."""
        _, found = self.doors.run("OP_CLUSTER_VERIFY")
        every = found["errors"] + found["warnings"]
        codes = [one["ecode"] for one in every]
        return codes.count("ENODESHAREDN1"), codes.count("ENODEN1")

    def score(self):
        """Return the score, which has one value and is a number."""
        found = [
            re.search(r"Initial score: (\S+)", out) or re.search(r"score (\S+)", out)
            for out in self.both(hbal, "-p", "--print-commands")
        ]
        told, read = (one[1].rstrip(",") if one else "" for one in found)
        assert told == read != "NaN"
        return told

    def room(self, template):
        """Return how many more of the standard size fit, by hspace."""
        words = ("--machine-readable", f"--disk-template={template}")
        counts = []
        for out in self.both(hspace, *words):
            first, last = (
                int(re.search(rf"HTS_{when}_INST_CNT=(\d+)", out)[1])
                for when in ("INI", "FIN")
            )
            counts.append(last - first)
        assert counts[0] == counts[1]
        return counts[0]

    def chosen(self, template):
        """Return where hail would place one more; None for nowhere."""
        disk = {"size": self.size, "mode": "rw"}
        if template == "plain" and self.exclusive:
            disk["spindles"] = 1
        request = {
            "type": "allocate",
            "name": "asked",
            "required_nodes": 2 if template == MIRRORED else 1,
            "memory": self.memory,
            "vcpus": 1,
            "disk_space_total": self.size,
            "disk_template": template,
            "disks": [disk],
            "spindle_use": 1,
            "tags": [],
            "nics": [],
        }
        empty = {"nodegroups": {}, "nodes": {}, "instances": {}, "cluster_tags": []}
        empty["enabled_hypervisors"] = ["kvm"]
        message = self.directory / "message"
        message.write_text(json.dumps(empty | {"request": request}))
        file = str(self.directory / "LOCAL.data")
        out = json.loads(self.said(hail, "-t", file, str(message)))
        return out["result"] if out["success"] else None

    def begin(self):
        """Ask while nobody is there: then every disk that there can be has room.

        So all answers together are not the same wrong one.
        """
        template = min(self.templates, key=KINDS.index)  # plain, where it is enabled
        self.scan()
        alone = self.exclusive and template == MIRRORED
        assert (self.room(template) > 0) is not alone, template

    def ask(self):
        """Ask everything, add, and ask again."""
        template = self.draw.choice(self.templates)
        self.scan()
        left = self.room(template)
        for _ in range(2):
            assert self.losses() == self.verified()
            self.score()
            chosen = self.chosen(template)
            assert (chosen is not None) == (left > 0), (template, left, chosen)
            assert self.add(template) == chosen, self.said_last
            if chosen is None:
                break
            left -= 1
            self.scan()
            assert self.room(template) == left, template


@pytest.mark.slow
@pytest.mark.requirement("S2-14", "S4-05", "S4-06", "S2-10")
@pytest.mark.parametrize("seed", range(SEED, SEED + CLUSTERS))
def test_every_question_of_room_has_one_answer(seed, tmp_path, capsys):
    doors = Doors(tmp_path, Random(seed).randint(2, 4))
    try:
        kinds = Kinds(doors, seed, tmp_path, capsys)
        kinds.configure()
        kinds.begin()
        kinds.fill()
        kinds.ask()
    finally:
        doors.close()
