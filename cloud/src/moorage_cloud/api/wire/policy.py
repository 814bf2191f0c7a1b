# SPDX-License-Identifier: BSD-2-Clause
"""Who may do what: rules by the names that operators know, with Cinder's defaults.

An administrator's ``policy.yaml`` changes them, as that of any OpenStack service.
"""

from collections.abc import Mapping
from functools import cache

from oslo_config.cfg import ConfigOpts
from oslo_policy.policy import Enforcer, RuleDefault

from moorage_cloud.conf import CONF
from moorage_cloud.errors import Forbidden
from moorage_cloud.identity.who import Identity

from .rules import RULES


@cache
def enforcer() -> Enforcer:
    """Return who decides; it reads the administrator's file again when it changes."""
    conf = ConfigOpts()
    conf(args=[], project="moorage-cloud", default_config_files=[])
    found = Enforcer(conf, policy_file=CONF.policy_file)
    found.register_defaults(
        [RuleDefault(one.name, one.check, one.description) for one in RULES]
    )
    return found


def may(identity: Identity, rule: str, target: Mapping[str, str] | None = None) -> bool:
    """Whether somebody may do something with what `target` says the owner of."""
    creds = identity.credentials()
    own = {"project_id": identity.project_id, "user_id": identity.user_id}
    return bool(enforcer().enforce(rule, dict(target or own), creds))


def check(
    identity: Identity, rule: str, target: Mapping[str, str] | None = None
) -> None:
    """Refuse who may not.

    Raises
    ------
    Forbidden
        With the name of the rule.
    """
    if not may(identity, rule, target):
        raise Forbidden(f"Policy doesn't allow {rule} to be performed.")
