# SPDX-License-Identifier: BSD-2-Clause
"""Settings of the cluster, and changing them."""

from moorage.cli import nic_options, policy_options
from moorage.cli.addresses import address_of
from moorage.cli.command import Call, Command
from moorage.cli.fields import fill, fills
from moorage.cli.follow import perform
from moorage.cli.operation import changes
from moorage.cli.option_syntax import (
    backend_parameters,
    check_changed,
    span,
    text_keys,
    truth,
    uid_ranges,
)
from moorage.cli.options import BACKEND_PARAMETERS, JOB
from moorage.errors import BadInput

from . import unneeded


def _modify(call: Call) -> None:
    for flag, field in (("-H", "hvparams"), ("-D", "diskparams")):
        check_changed(flag, call.option(field))
    policy = policy_options.changed(call, call.client.info)
    if not (call.given or policy) and _is_moot(call):
        call.terminal.print("Nothing to modify: it is so in any case")
        return
    fields = changes(call, "gnt-cluster modify --help", **policy, **_resolved(call))
    perform(call, **fields)
    call.terminal.print("Modified the cluster")


def _resolved(call: Call) -> dict[str, str]:
    """Return the master's address where only its device is given, as in Ganeti.

    It is that of the cluster's name, if it has none yet.
    """
    if ip := call.option("master_ip"):
        return {"master_ip": address_of(str(ip))}
    if not call.option("master_netdev"):
        return {}
    found = call.client.info()
    return {} if found["master_netdev"] else {"master_ip": address_of(found["name"])}


def _is_moot(call: Call) -> bool:
    """Whether a value was given for what is so in any case."""
    moot = [one for one in call.command.options if one.moot and one.metavar]
    return any(call.option(one.name) is not None for one in moot)


def _pair(text: str) -> tuple[str, str]:
    """Return name and provider of ``NAME=PROVIDER``."""
    name, _, provider = text.partition("=")
    if not (name and provider):
        raise BadInput(
            f"a pool is made of a name and a provider, not of '{name}' and '{provider}'"
        )
    return name, provider


SETTINGS = (
    *fills(
        "--enabled-hypervisors --enabled-disk-templates --shared-file-storage-dir",
        "--file-storage-dir --gluster-storage-dir --vg-name=volume_group_name",
        "-H/--hypervisor-parameters=hvparams -D/--disk-parameters=diskparams",
        "-I/--default-iallocator -C/--candidate-pool-size",
        "--node-parameters=ndparams",
    ),
    BACKEND_PARAMETERS._replace(
        convert=lambda text: {"default": backend_parameters(text)}
    ),
    fill(
        "--default-iallocator-params",
        metavar="KEY=VALUE,...",
        convert=text_keys,
    ),
    fill("-m/--mac-prefix", metavar="MAC"),
    fill("--user-shutdown=enabled_user_shutdown", metavar="yes|no", convert=truth),
    fill("--uid-pool", metavar="RANGES", convert=uid_ranges),
    *fills("--master-ip --master-netdev --master-netmask"),
    nic_options.DEFAULTS,
    *policy_options.OPTIONS,
    policy_options.STANDARD,
)
_UIDS = (
    fill("--add-uids", metavar="RANGES", convert=uid_ranges),
    fill("--remove-uids", metavar="RANGES", convert=uid_ranges),
)
_POOLS = (
    fill(
        "--add-pool=add_pools",
        metavar="NAME PROVIDER",
        convert=_pair,
        repeats=True,
        pair=True,
    ),
    fill("--remove-pool=remove_pools", repeats=True),
)

MODIFY = Command(
    "modify",
    _modify,
    (),
    (
        *SETTINGS,
        *_UIDS,
        *fills("--max-running-jobs"),
        fill("--ssconf", metavar="yes|no", convert=truth),
        fill("--job-retention", metavar="TIME", convert=span),
        *unneeded.MODIFY,
        *unneeded.SHARED,
        *_POOLS,
        *JOB,
    ),
    examples={
        "gnt-cluster modify -D ext:access=userspace": (
            "guests open ext disks themselves"
        ),
        "gnt-cluster modify --master-ip 192.0.2.9 --master-netdev br0": (
            "an address that the node has whose master leads"
        ),
        "gnt-cluster modify --job-retention=4w": (
            "archived jobs are kept for four weeks"
        ),
        "gnt-cluster modify --uid-pool=30000-30099": (
            "guests run as these users, each as one of its own"
        ),
        "gnt-cluster modify --add-pool nas1 san": (
            "a storage pool of the provider san; gnt-storage pool connect says where"
        ),
    },
    operation="OP_CLUSTER_SET_PARAMS",
)
COMMANDS = (MODIFY,)
