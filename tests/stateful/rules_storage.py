# SPDX-License-Identifier: BSD-2-Clause
"""What people do with storage pools and backups, in any order."""

from asking import Asking
from hypothesis import strategies as st
from life import instances, nodes, pools, step, which


class Storage(Asking):
    """Requests that name a storage pool or an export."""

    @step(name=pools, there=st.booleans())
    def make_pool(self, name: str, there: bool) -> None:
        groups = ["default"] if there else []
        self.ask("STORAGE_POOL_ADD", pool_name=name, provider="san", groups=groups)

    @step(name=pools)
    def remove_pool(self, name: str) -> None:
        self.ask("STORAGE_POOL_REMOVE", pool_name=name)

    @step(name=pools, there=st.booleans())
    def connect(self, name: str, there: bool) -> None:
        op = "STORAGE_POOL_CONNECT" if there else "STORAGE_POOL_DISCONNECT"
        self.ask(op, pool_name=name, groups=["default"])

    @step(instance=which, node=nodes, runs=st.booleans())
    def export(self, instance: int, node: str, runs: bool) -> None:
        name = self.instance(instance)
        home = self.expected.instances.get(name)
        to = home.node if home and runs else node
        asked = {"instance_name": name, "target_node": to}
        self.ask("BACKUP_EXPORT", **asked, shutdown=not runs)

    @step(instance=which, node=nodes)
    def export_and_remove(self, instance: int, node: str) -> None:
        if self.crowded:
            asked = {"instance_name": self.instance(instance), "target_node": node}
            self.ask("BACKUP_EXPORT", **asked, remove_instance=True)

    @step(export=which, name=instances, start=st.booleans())
    def restore(self, export: int, name: str, start: bool) -> None:
        found = self.exported("")
        if found and self.roomy:
            node, path = found[export % len(found)]
            dumps = self.expected.exports[node, path]
            disks = [{"name": f"disk{next(self.fresh)}"} for _ in dumps]
            where = {"src_node": node, "src_path": path, "pnode": node}
            how = {"mode": "import", "disks": disks, "start": start}
            self.ask("INSTANCE_CREATE", instance_name=name, **where, **how)

    @step(disk=which, node=nodes)
    def export_disk(self, disk: int, node: str) -> None:
        self.on_disk("DISK_EXPORT", disk, target_node=node)

    @step(export=which)
    def restore_disk(self, export: int) -> None:
        found = self.exported("disk+")
        if found and self.roomy:
            node, path = found[export % len(found)]
            new = {"name": f"disk{next(self.fresh)}", "src_node": node}
            self.ask("DISK_IMPORT", src_path=path, **new)

    @step(export=which)
    def remove_export(self, export: int) -> None:
        found = sorted(self.expected.exports)
        if found:
            node, name = found[export % len(found)]
            self.ask("BACKUP_REMOVE", instance_name=name, node=node)

    def exported(self, kind: str) -> list[tuple[str, str]]:
        """Return node and name of exports: of disks, or of instances."""
        known = sorted(self.expected.exports)
        return [one for one in known if one[1].startswith("disk+") == bool(kind)]
