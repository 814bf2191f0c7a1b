# SPDX-License-Identifier: BSD-2-Clause
"""What several commands on disks take."""

from moorage.cli.command import Operand, Option
from moorage.cli.option_syntax import key_values, text_params

DISK = Operand("DISK", field="disk")

PROVIDER = Option(("-p", "--provider"), "ExtStorage provider, for ext", "NAME")
ACCESS = Option(
    ("--access",), "how a guest reaches it", "HOW", choices=("kernelspace", "userspace")
)
PARAM = Option(
    ("-D", "--param"),
    "parameters of the template or provider; may be repeated",
    "KEY=VALUE,...",
    key_values,
    repeats=True,
    dest="params",
    join=text_params,
)

MODE = Option(("--mode",), "rw or ro", "MODE", choices=("rw", "ro"))
