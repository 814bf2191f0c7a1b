# SPDX-License-Identifier: BSD-2-Clause
"""What people ask for of single disks, in any order."""

from typing import Any

import comparing
from asking import Asking
from hypothesis import strategies as st
from life import GROUPS, kinds, step, which
from things import Disk as Wanted

from moorage.model import Disk

LISTED = {"sharedfile", "file", "plain", "rbd", "gluster"}
"""Templates that tell which volumes there are, and need one for a disk."""
names = st.sampled_from(("alpha", "beta", "gamma", "delta"))


class Disks(Asking):
    """Requests that name a disk."""

    @step(kind=kinds, which=which)
    def add(self, kind: dict[str, Any], which: int) -> None:
        if self.roomy:
            new = {"name": f"disk{next(self.fresh)}", **self.place(which, kind)}
            group = {} if "node" in new else {"group": GROUPS[0]}
            self.ask("DISK_ADD", size=64 * (which + 1), **new, **group)

    @step(epoch=which)
    def adopt_theirs(self, epoch: int) -> None:
        """Make a disk of a volume that somebody else made."""
        if self.roomy:
            name = f"theirs{next(self.fresh)}"
            volume = {"size": 64, "provider": "san", "data": f"of {name}"}
            self.cluster.nodes.san.volumes[name] = volume
            self.expected.theirs.add(name)
            new = {"name": f"disk{next(self.fresh)}", "size": 64, "adopt": name}
            where = {"disk_template": "ext", "provider": "san", "group": GROUPS[0]}
            self.ask("DISK_ADD", **new, **where, epoch=epoch)

    @step(disk=which, instance=which, front=st.booleans())
    def attach(self, disk: int, instance: int, front: bool) -> None:
        slot = {"index": 0} if front else {}
        name = self.instance(instance)
        self.on_disk("DISK_ATTACH", disk, self.free, instance_name=name, **slot)

    @step(disk=which)
    def detach(self, disk: int) -> None:
        self.on_disk("DISK_DETACH", disk, self.taken)

    @step(disk=which, amount=st.sampled_from((8, 64)))
    def grow(self, disk: int, amount: int) -> None:
        self.on_disk("DISK_GROW", disk, amount=amount)

    @step(disk=which, name=names)
    def rename(self, disk: int, name: str) -> None:
        self.on_disk("DISK_RENAME", disk, new_name=name)

    @step(disk=which, name=st.none() | names)
    def snapshot(self, disk: int, name: str | None) -> None:
        if self.roomy:
            self.on_disk("DISK_SNAPSHOT", disk, new_name=name)

    @step(disk=which, kind=kinds | st.just({}))
    def clone(self, disk: int, kind: dict[str, Any]) -> None:
        if self.roomy:
            new = {"new_name": f"disk{next(self.fresh)}", **self.place(disk, kind)}
            self.on_disk("DISK_CLONE", disk, **new)

    @step(disk=which, kind=kinds)
    def convert(self, disk: int, kind: dict[str, Any]) -> None:
        self.on_disk("DISK_CONVERT", disk, **self.place(disk, kind))

    @step(disk=which, tag=st.sampled_from(("a", "b")), away=st.booleans())
    def tag(self, disk: int, tag: str, away: bool) -> None:
        op = "TAGS_DEL" if away else "TAGS_SET"
        if self.expected.disks:
            self.ask(op, kind="disk", name=self.disk(disk), tags=[tag])

    @step(instance=which, tag=st.sampled_from(("a", "b")), away=st.booleans())
    def tag_instance(self, instance: int, tag: str, away: bool) -> None:
        op = "TAGS_DEL" if away else "TAGS_SET"
        self.ask(op, kind="instance", name=self.instance(instance), tags=[tag])

    @step(disk=which)
    def remove_disk(self, disk: int) -> None:
        self.on_disk("DISK_REMOVE", disk, self.free)

    @step(disk=which, adopt=st.booleans())
    def lose(self, disk: int, adopt: bool) -> None:
        """Forget a disk, see that its volume is found, and make a disk of it again."""
        self.rest()
        free = [u for u in self.free if self.expected.disks[u].template in LISTED]
        if not free or self.dark or self.expected.offline:
            return
        gone = self.cluster.config.disk(free[disk % len(free)])
        self.done("DISK_FORGET", disk=gone.uuid, why="somebody lost it")
        told = self.done("STORAGE_RECONCILE")
        plan = [one for one in told["plan"] if one["do"] != "detach"]
        assert [one["volume"][-1] for one in plan] == [gone.logical_id[-1]]
        assert told["missing"] == []
        assert not (self.peace and told["attached"])
        uuid = self.adopted(gone) if adopt else self.repaired(plan)
        was = self.expected.disks.pop(gone.uuid)
        found = self.cluster.config.disk(uuid)
        self.expected.disks[uuid] = Wanted(
            found.name, was.size, was.template, roomy=was.roomy, writes=was.writes
        )
        assert comparing.data_of(self.cluster, uuid) == was.writes

    def adopted(self, gone: Disk) -> str:
        """Let somebody say what a volume is; return the new disk."""
        node = {"node": gone.nodes[0]} if gone.nodes else {"group": GROUPS[0]}
        what = {"disk_template": gone.dev_type, "params": dict(gone.params)}
        name = str(gone.logical_id[-1])
        return str(self.done("DISK_ADOPT", volume=name, **what, **node))

    def repaired(self, plan: list[dict[str, Any]]) -> str:
        """Let a volume become a disk in quarantine, which somebody lifts."""
        self.done("STORAGE_RECONCILE", repair=plan)
        (found,) = [one for one in self.cluster.config.all(Disk) if one.quarantine]
        self.done("DISK_SET_PARAMS", disk=found.uuid, lift_quarantine=True)
        return found.uuid
