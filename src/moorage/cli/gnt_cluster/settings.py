# SPDX-License-Identifier: BSD-2-Clause
"""Settings of the cluster, and changing them."""

from moorage.cli import nic_options, policy_options
from moorage.cli.command import Call, Command, Option
from moorage.cli.follow import perform
from moorage.cli.operation import changes
from moorage.cli.option_syntax import (
    backend_parameters,
    check_changed,
    ident_key_values,
    names,
    nested,
    truth,
    uid_ranges,
)
from moorage.cli.options import (
    BACKEND_PARAMETERS,
    DISK_PARAMETERS,
    IALLOCATOR,
    JOB,
    NODE_PARAMETERS,
)
from moorage.errors import BadInput

from . import unneeded


def _modify(call: Call) -> None:
    for flag, field in (("-H", "hvparams"), ("-D", "diskparams")):
        check_changed(flag, call.option(field))
    policy = policy_options.changed(call, lambda: call.client.call("QueryClusterInfo"))
    if not (call.given or policy) and _is_moot(call):
        call.terminal.print("Nothing to modify: it is so in any case")
        return
    fields = changes(call, "gnt-cluster modify --help", **policy)
    perform(call, "OP_CLUSTER_SET_PARAMS", **fields)
    call.terminal.print("Modified the cluster")


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
    Option(
        ("--enabled-hypervisors",), "what guests may run on: kvm, fake", "NAMES", names
    ),
    Option(
        ("--enabled-disk-templates",), "how disks may be stored", "TEMPLATES", names
    ),
    Option(
        ("--shared-file-storage-dir",),
        "where the shared file system is mounted, on every node",
        "DIR",
    ),
    Option(("--file-storage-dir",), "where files of one node are", "DIR"),
    Option(
        ("--gluster-storage-dir",), "where nodes mount the volumes of Gluster", "DIR"
    ),
    Option(
        ("--vg-name",),
        "the volume group of plain disks, on every node",
        "NAME",
        dest="volume_group_name",
    ),
    Option(
        ("-H", "--hypervisor-parameters"),
        "defaults of a hypervisor; may be repeated",
        "NAME:KEY=VALUE,...",
        ident_key_values,
        repeats=True,
        dest="hvparams",
        join=nested,
    ),
    BACKEND_PARAMETERS._replace(
        help="defaults: memory=1G,vcpus=2 and the like",
        convert=lambda text: {"default": backend_parameters(text)},
    ),
    DISK_PARAMETERS,
    IALLOCATOR._replace(
        flags=("-I", "--default-iallocator"), help="the allocator to ask by default"
    ),
    Option(
        ("-C", "--candidate-pool-size"),
        "how many nodes are to be master candidates",
        "N",
        int,
    ),
    Option(("-m", "--mac-prefix"), "first three bytes of MACs: aa:00:00", "MAC"),
    NODE_PARAMETERS._replace(
        help="node parameters where neither a node nor its group has others"
    ),
    Option(
        ("--user-shutdown",),
        "whether a guest that powers itself off may stay off",
        "yes|no",
        truth,
        dest="enabled_user_shutdown",
    ),
    Option(
        ("--uid-pool",),
        "the users that guests run as, such as 30000-30099,40000",
        "RANGES",
        uid_ranges,
    ),
    nic_options.DEFAULTS,
    *policy_options.OPTIONS,
    policy_options.STANDARD,
)
_JOBS = Option(("--max-running-jobs",), "how many jobs work at once", "N", int)
_UIDS = (
    Option(("--add-uids",), "more users that guests run as", "RANGES", uid_ranges),
    Option(("--remove-uids",), "ranges to take out of them", "RANGES", uid_ranges),
)

_POOLS = (
    Option(
        ("--add-pool",),
        "make a storage pool of an ExtStorage provider; may be repeated",
        "NAME PROVIDER",
        _pair,
        repeats=True,
        dest="add_pools",
        pair=True,
    ),
    Option(
        ("--remove-pool",),
        "remove a storage pool that no disk is in; may be repeated",
        "NAME",
        repeats=True,
        dest="remove_pools",
    ),
)

MODIFY = Command(
    "modify",
    _modify,
    (),
    (
        *SETTINGS,
        *_UIDS,
        _JOBS,
        *unneeded.MODIFY,
        *unneeded.SHARED,
        *_POOLS,
        *JOB,
    ),
    examples={
        "gnt-cluster modify -D ext:access=userspace": (
            "guests open ext disks themselves"
        ),
        "gnt-cluster modify --uid-pool=30000-30099": (
            "guests run as these users, each as one of its own"
        ),
        "gnt-cluster modify --add-pool nas1 san": (
            "a storage pool of the provider san; gnt-storage pool connect says where"
        ),
    },
)
COMMANDS = (MODIFY,)
