# SPDX-License-Identifier: BSD-2-Clause
"""Options of commands that run the scripts of an OS definition."""

from moorage.cli.command import Call, Option
from moorage.cli.option_syntax import key_values, text_values
from moorage.cli.options import refused

NO_CHANNEL = "a guest has no network to its node"
"""Why instances have no card for metadata."""
_PARAMETERS = {
    "osparams": "os_parameters",
    "osparams_private": "os_parameters_private",
    "osparams_secret": "os_parameters_secret",
}
"""Options with OS parameters, by field."""


def parameters(call: Call) -> dict[str, dict[str, str]]:
    """Return the OS parameters that were given: public, private and secret."""
    given = {field: call.option(option) for field, option in _PARAMETERS.items()}
    return {field: text_values(keys) for field, keys in given.items() if keys}


def _os_parameters(word: str, told: str) -> Option:
    return Option((f"--os-parameters-{word}",), told, "KEY=VALUE,...", key_values)


OS_PARAMETERS = (
    Option(
        ("-O", "--os-parameters"), "for the OS's scripts", "KEY=VALUE,...", key_values
    ),
    _os_parameters("private", "likewise; shown to nobody"),
    _os_parameters("secret", "likewise; for this installation, kept by nobody"),
)
"""Options of each command that runs an OS's scripts."""
FORCE_VARIANT = refused("--force-variant", "an OS has the variants that its list names")
