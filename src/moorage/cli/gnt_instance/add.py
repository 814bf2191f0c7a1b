# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance add."""

from typing import Any

from moorage.cli import nic_options
from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.fields import fill, fills
from moorage.cli.follow import perform
from moorage.cli.option_syntax import backend_parameters, ident_key_values
from moorage.cli.options import BACKEND_PARAMETERS, JOB, NO_WAIT_FOR_SYNC, moot, refused
from moorage.errors import BadInput
from moorage.units import parse_size

from .disk_options import disk_option, new_disks
from .os_options import FORCE_VARIANT, NO_CHANNEL, OS_PARAMETERS


def _add(call: Call) -> None:
    (name,) = call.words
    model = call.option("source")
    way = {"mode": "clone", "src_instance": model} if model else {"mode": "create"}
    placed = perform(
        call,
        **way,
        disks=_disks(call),
        **call.fields,
        **nodes(call),
        **cards(call),
        **guest(call),
    )
    if placed and not call.option("node"):
        named = call.option("iallocator")
        who = f" via iallocator {named}" if named and named != "." else ""
        chosen = ", ".join(placed)
        call.terminal.print(f"Selected nodes for instance {name}{who}: {chosen}")
    call.terminal.print(f"Added instance {name}")


def _disks(call: Call) -> list[dict[str, Any]]:
    given, size = call.option("disk"), call.option("os_size")
    if given and size is not None:
        raise BadInput("-s and --disk both give the first disk", hint="use --disk only")
    return [{"size": int(size)}] if size is not None else new_disks(given)


_NO_HELPER = "an OS's scripts run on the node, in no guest of their own"
_AT_ONCE = "an instance is made at once, and its job has its room until then"


def cards(call: Call) -> dict[str, Any]:
    """Return the network cards, if anything was said of them."""
    found = nic_options.new_cards(call)
    return {} if found is None else {"nics": found}


def nodes(call: Call) -> dict[str, Any]:
    """Return the nodes that ``-n`` names.

    Raise `BadInput` if ``-I`` is there, too, or a name is left out.
    """
    node = call.option("node")
    if node is not None and not all(node.split(":")):
        raise BadInput(f"'-n {node}' leaves a name out", hint="-n NODE, -n NODE:NODE")
    if node and call.option("iallocator"):
        raise BadInput("-n names the node, -I chooses one: only one of these goes")
    primary, colon, secondary = (node or "").partition(":")
    found = {"pnode": primary} if primary else {}
    return {**found, "snode": secondary} if colon else found


def guest(call: Call) -> dict[str, Any]:
    """Return the hypervisor and its parameters, if they were given."""
    if not call.option("hypervisor_parameters"):
        return {}
    kind, keys = call.option("hypervisor_parameters")
    own = {key: value for key, value in keys.items() if value is not None}
    return {"hypervisor": kind, "hvparams": own}


def _own(text: str) -> dict[str, Any]:
    """Return backend parameters; a new instance has the default ones in any case."""
    given = backend_parameters(text).items()
    return {key: value for key, value in given if value != "default"}


COMMANDS = (
    Command(
        "add",
        _add,
        (Operand("NAME", field="instance_name"),),
        (
            *fills(
                "-t/--disk-template -I/--iallocator -o/--os-type",
                "-g/--node-group=group_name --no-install --install-adopted",
                "--force-params --ignore-ipolicy --ignore-capacity",
                "--file-storage-dir --tags",
            ),
            Option(
                ("--disk",),
                "a disk; pool=, dev_type=, provider=, name=, adopt=, and what its "
                "storage takes",
                "N:size=SIZE,...",
                disk_option,
                repeats=True,
            ),
            Option(
                ("--from",),
                "another instance at rest: it gets copies of its disks, and what is "
                "not said is as that one has it",
                "INSTANCE",
                dest="source",
            ),
            Option(("-s", "--os-size"), "size of the only disk", "SIZE", parse_size),
            Option(
                ("-n", "--node"), "the primary node; with mirrored disks, both", "A[:B]"
            ),
            *OS_PARAMETERS,
            FORCE_VARIANT,
            Option(
                ("-H", "--hypervisor-parameters", "--hypervisor"),
                "the hypervisor and its parameters",
                "NAME:KEY=VALUE,...",
                ident_key_values,
                dest="hypervisor_parameters",
            ),
            BACKEND_PARAMETERS._replace(convert=_own),
            nic_options.NEW,
            Option(("--no-nics",), "no network card; without --net there may be one"),
            fill("--no-start=start", help="do not start it", value=False),
            NO_WAIT_FOR_SYNC,
            moot("--no-ip-check", "nobody pings an address"),
            moot("--no-name-check", "no name is resolved"),
            moot("--opportunistic-locking", "locks of nodes are shared"),
            moot("--helper-startup-timeout", _NO_HELPER, "SECONDS"),
            moot("--helper-shutdown-timeout", _NO_HELPER, "SECONDS"),
            refused("--forthcoming", _AT_ONCE),
            refused("--commit", _AT_ONCE),
            refused("--communication", NO_CHANNEL, "yes|no", short="-c"),
            nic_options.CONFLICTS,
            fill(
                "--file-driver",
                help="loop; others are refused: QEMU itself opens image files",
                metavar="NAME",
                choices=("loop", "blktap", "blktap2"),
            ),
            *JOB,
        ),
        examples={
            "gnt-instance add -t ext --disk 0:size=10G,provider=san -o debian web1": (
                "one disk on the provider san"
            ),
            (
                "gnt-instance add --disk 0:size=1G,dev_type=file "
                "--disk 1:size=9G,dev_type=ext,provider=san -n node2 -o debian web2"
            ): "disks of two templates, on node2",
            "gnt-instance add -t diskless --no-install web3": (
                "no disk yet: gnt-disk attach gives it one"
            ),
            "gnt-instance add --from debian-model web4": (
                "as debian-model, with copies of its disks and a name of its own"
            ),
        },
        operation="OP_INSTANCE_CREATE",
    ),
)
