# SPDX-License-Identifier: BSD-2-Clause
"""gnt-cluster renew-crypto: new keys and certificates, while guests run."""

from collections.abc import Mapping
from typing import Any

from moorage.cli.command import Call, Command
from moorage.cli.fields import fills
from moorage.cli.follow import fetch, follow_many, perform, submitted
from moorage.cli.options import JOB, NO_SSH, moot, refused
from moorage.cli.table import moment

_RAPI = "moorage rapi certificate gives the door one; rapi.toml names another file"
_NO_SPICE = "screens are VNC, whose certificates are in a guest's vnc_x509_path"
_NO_DOMAIN = "no instance moves between clusters: they share nothing for it"


def _renew(call: Call) -> int:
    if call.option("cluster_certificate"):
        perform(call, **call.given)
        call.terminal.print("Renewed the authority and all certificates")
        return 0
    found = fetch(call, **call.given | {"node_certificates": True})
    status = follow_many(call, submitted(found))
    if not status and not call.option("json"):
        call.terminal.print("Renewed the certificates of the master and its nodes")
    return status


def authority(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown of the certificate authority, where there is one."""
    if not told:
        return {}
    ends = moment(told.get("authority_ends"))
    return {
        "Certificate authority": {"SHA-256": told.get("authority"), "until": ends},
        "Master's certificate": {"SHA-256": told.get("let_in_by") or ""},
    }


_OTHERS = (
    moot("--new-ssh-keys", NO_SSH),
    moot("--no-ssh-key-check", NO_SSH),
    moot("--new-rapi-certificate", _RAPI),
    refused("--rapi-certificate", _RAPI, "FILE"),
    moot("--new-spice-certificate", _NO_SPICE),
    refused("--spice-certificate", _NO_SPICE, "FILE"),
    refused("--spice-ca-certificate", _NO_SPICE, "FILE"),
    moot("--new-confd-hmac-key", "nobody but the master answers for the cluster"),
    moot("--new-cluster-domain-secret", _NO_DOMAIN),
    refused("--cluster-domain-secret", _NO_DOMAIN, "FILE"),
    refused("--ssh-key-type", NO_SSH, "TYPE"),
    refused("--ssh-key-bits", NO_SSH, "BITS"),
    moot("--verbose", "the job's log tells all", short="-v"),
)
"""Ganeti's, for keys that there are not."""
COMMANDS = (
    Command(
        "renew-crypto",
        _renew,
        (),
        (
            *fills(
                "--new-node-certificates=node_certificates",
                "--new-cluster-certificate=cluster_certificate -f/--force",
            ),
            *_OTHERS,
            *JOB,
        ),
        examples={
            "gnt-cluster renew-crypto --new-node-certificates": (
                "somebody may have seen a key"
            )
        },
        operation="OP_CLUSTER_RENEW_CRYPTO",
    ),
)
