# SPDX-License-Identifier: BSD-2-Clause
"""What balancing may do, from the options of hbal and hcheck."""

from moorage.cli.declaration import Options
from moorage.htools.plans.balancing import Rules


def rules(options: Options) -> Rules:
    """Return the rules that the options ask for."""
    return Rules(
        disk_moves=not options.no_disk_moves,
        inst_moves=not options.no_instance_moves,
        restricted=getattr(options, "restricted", False),
        evacuate=options.evac_mode,
        force=options.ignore_soft_errors,
        min_gain=options.min_gain,
        gain_limit=options.min_gain_limit,
        min_score=options.min_score,
        max_steps=options.max_length,
        keep_redundancy=not options.no_capacity_checks,
    )
