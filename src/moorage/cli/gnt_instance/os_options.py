# SPDX-License-Identifier: BSD-2-Clause
"""Options of commands that run the scripts of an OS definition."""

from moorage.cli.command import Option
from moorage.cli.option_syntax import text_keys
from moorage.cli.options import refused

NO_CHANNEL = "a guest has no network to its node"
"""Why instances have no card for metadata."""
OS_PARAMETERS = tuple(
    Option(flags, told, "KEY=VALUE,...", text_keys, dest=field)
    for field, flags, told in (
        ("osparams", ("-O", "--os-parameters"), "for the OS's scripts"),
        (
            "osparams_private",
            ("--os-parameters-private",),
            "likewise; shown to nobody",
        ),
        (
            "osparams_secret",
            ("--os-parameters-secret",),
            "likewise; for this installation, kept by nobody",
        ),
    )
)
"""Options of each command that runs an OS's scripts."""
FORCE_VARIANT = refused("--force-variant", "an OS has the variants that its list names")
