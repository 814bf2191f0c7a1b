# SPDX-License-Identifier: BSD-2-Clause
"""gnt-cluster renew-crypto: new keys and certificates, while guests run."""

from collections.abc import Mapping
from typing import Any

from moorage.cli.command import Call, Command, Option
from moorage.cli.follow import fetch, follow_many, perform, submitted
from moorage.cli.options import FORCE, JOB, NO_SSH, moot, refused
from moorage.cli.table import moment

_RAPI = "moorage rapi certificate gives the door one; rapi.toml names another file"
_NO_SPICE = "screens are VNC, whose certificates are in a guest's vnc_x509_path"
_NO_DOMAIN = "no instance moves between clusters: they share nothing for it"
_OPERATION = "OP_CLUSTER_RENEW_CRYPTO"


def _renew(call: Call) -> int:
    if call.option("cluster_certificate"):
        perform(call, _OPERATION, **call.given)
        call.terminal.print("Renewed the authority and all certificates")
        return 0
    found = fetch(call, _OPERATION, **call.given | {"node_certificates": True})
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
            Option(
                ("--new-node-certificates",),
                "of nodes and master; also if nothing is named",
                dest="node_certificates",
            ),
            Option(
                ("--new-cluster-certificate",),
                "a new authority, and with it all certificates",
                dest="cluster_certificate",
            ),
            *_OTHERS,
            FORCE._replace(
                help="believe nodes by their certificates alone, whatever keys they "
                "have; with a new authority, shut out nodes that are marked offline",
                local=False,
            ),
            *JOB,
        ),
        examples={
            "gnt-cluster renew-crypto --new-node-certificates": (
                "somebody may have seen a key"
            )
        },
    ),
)
