# SPDX-License-Identifier: BSD-2-Clause
"""The configuration in Ganeti's layout, as ``config.data`` has it.

No command writes such a file: rows about it are about what it would hold.
"""

from typing import Any

from moorage.model import KINDS, Config, Disk
from moorage.model.change import encode

VERSION = 3_010_000
"""The configuration version that is written: Ganeti 3.1's."""
_PLURAL = {
    "node": "nodes",
    "nodegroup": "nodegroups",
    "pool": "storagepools",
    "instance": "instances",
    "disk": "disks",
}


def config_data(config: Config) -> dict[str, Any]:
    """Return the whole configuration as Ganeti's JSON values."""
    cluster = config.cluster
    data: dict[str, Any] = {
        "version": VERSION,
        "serial_no": config.serial_no,
        "ctime": cluster.ctime,
        "mtime": cluster.mtime,
        "cluster": encode(cluster) | {"storage_pools": config.storage_pools()},
        "networks": {},
        "filters": {},
    }
    for kind, name in _PLURAL.items():
        data[name] = {one.uuid: encode(one) for one in config.all(KINDS[kind])}
    for disk in config.all(Disk):
        slot = config.iv_name(disk)
        if slot:
            data["disks"][disk.uuid]["iv_name"] = slot
    return data
