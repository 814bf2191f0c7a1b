# SPDX-License-Identifier: BSD-2-Clause
"""What disks hold, before and after they get other storage."""


def disk(cluster, name):
    return cluster.config.disk(name)


def data(cluster, name):
    """Return what the disk's volume holds."""
    found, san = disk(cluster, name), cluster.nodes.san
    local = f"{found.nodes[0]}:" if found.nodes else ""
    places = (
        san.files.get(local + found.volume),
        san.volumes.get(found.volume),
        san.devices.get(found.volume),
    )
    return next(place for place in places if place)["data"]


def volumes(cluster):
    return {*cluster.nodes.san.volumes, *cluster.nodes.san.files}


def ran(cluster, word):
    """Say whether some node ran a program."""
    nodes = cluster.nodes.nodes.values()
    return any(
        word in (one.argv[0].rpartition("/")[2], *one.argv[1:2])
        for n in nodes
        for one in n.machine.ran
    )
