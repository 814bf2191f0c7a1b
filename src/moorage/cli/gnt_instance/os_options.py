# SPDX-License-Identifier: BSD-2-Clause
"""Options of commands that run the scripts of an OS definition."""

from moorage.cli.fields import fill
from moorage.cli.option_syntax import text_keys
from moorage.cli.options import refused

NO_CHANNEL = "a guest has no network to its node"
"""Why instances have no card for metadata."""
OS_PARAMETERS = (
    fill("-O/--os-parameters=osparams", convert=text_keys),
    fill("--os-parameters-private=osparams_private", convert=text_keys),
    fill("--os-parameters-secret=osparams_secret", convert=text_keys),
)
"""Options of each command that runs an OS's scripts."""
FORCE_VARIANT = refused("--force-variant", "an OS has the variants that its list names")
