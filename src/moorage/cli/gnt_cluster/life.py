# SPDX-License-Identifier: BSD-2-Clause
"""Making a cluster, and ending it."""

from importlib import import_module
from typing import Any

from moorage.cli import join_token, policy_options
from moorage.cli.addresses import address_of, ip_version, resolved
from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.options import DEBUG, NO_SSH, moot
from moorage.errors import BadInput

from . import unneeded
from .settings import SETTINGS

_BOOTSTRAP = "moorage.daemons.bootstrap"


def _init(call: Call) -> None:
    (name,) = call.words
    start = not call.option("no_start")
    node = call.option("node_name") or "node1"
    token = join_token.token(call, node)
    if token is None and (token := join_token.of_this_machine(call)):
        node = call.option("node_name") or join_token.name_of_this_machine()
    bootstrap = import_module(_BOOTSTRAP)  # the daemons' side is slow to import
    version = int(call.option("primary_ip_version") or 0)
    given = {
        **call.given,
        "node_name": node,
        "primary_ip": resolved(call, "primary_ip", version),
        "secondary_ip": resolved(call, "secondary_ip", version),
        **({"ip_version": version} if version else {}),
        **_moving(call, name, version),
        **policy_options.changed(call, _no_cluster),
    }
    store = str(call.option("store") or "")
    bootstrap.init(name, settings=given, token=token, start=start, store=store)
    call.terminal.print(f"Cluster {name} is made")


def _moving(call: Call, name: str, version: int) -> dict[str, str]:
    """Return the master's address: that of the cluster's name, as in Ganeti."""
    word = call.option("master_ip") or (call.option("master_netdev") and name)
    return {"master_ip": address_of(str(word), version)} if word else {}


def _no_cluster() -> dict[str, Any]:
    """Return what a new cluster's policy is made from."""
    from moorage.model import ipolicy  # noqa: PLC0415 - as bootstrap: slow to load

    return {"ipolicy": ipolicy.DEFAULT}


def _destroy(call: Call) -> None:
    if not call.option("yes_do_it"):
        raise BadInput(
            "destroying the cluster cannot be taken back",
            hint="gnt-cluster destroy --yes-do-it, if you really want to",
        )
    import_module(_BOOTSTRAP).destroy()
    call.terminal.print("The cluster is destroyed")


INIT = Command(
    "init",
    _init,
    (Operand("NAME"),),
    (
        *SETTINGS,
        Option(
            ("--primary-ip",),
            "where the node's agent is reached, if not where its token says",
            "ADDRESS",
        ),
        Option(
            ("-s", "--secondary-ip"),
            "of the node: by it disks are mirrored, and guests migrate",
            "ADDRESS",
        ),
        Option(
            ("--primary-ip-version",),
            "4 or 6: names are resolved to such addresses, and the node has one",
            "VERSION",
            ip_version,
        ),
        *join_token.OPTIONS,
        Option(
            ("--node-name",),
            "name of the first node; of this machine, or node1",
            "NAME",
        ),
        Option(
            ("--store",),
            "keep the state in etcd: etcd://HOST:PORT,.../PREFIX of this machine's "
            "members, or a file with endpoints, prefix, ca, certificate, key, user, "
            "password and lease",
            "WHERE",
        ),
        Option(("--no-start",), "do not start the master"),
        moot("--no-lvm-storage", "LVM is used where --vg-name names a group"),
        moot("--no-drbd-storage", "DRBD is used where a disk asks for it"),
        moot("--no-etc-hosts", "/etc/hosts is never written"),
        *unneeded.SHARED,
        *unneeded.INIT,
        moot("--no-ssh-init", NO_SSH),
        DEBUG,
    ),
    examples={
        "gnt-cluster init --shared-file-storage-dir=/srv/shared demo": (
            "with a directory that all nodes see"
        )
    },
    operation="OP_CLUSTER_SET_PARAMS",
    here="it makes the machine on which it is typed the first node",
)
DESTROY = Command(
    "destroy",
    _destroy,
    (),
    (Option(("--ya-rly", "--yes-do-it"), "really"), DEBUG),
    here="it ends the master, and removes what that keeps on its machine",
)
COMMANDS = (INIT, DESTROY)
