# SPDX-License-Identifier: BSD-2-Clause
"""The rules, and what holds unless ``policy.yaml`` says otherwise."""

from msgspec import Struct


class Rule(Struct, frozen=True):
    """A rule in the language of policies."""

    name: str
    check: str
    description: str


READER = "rule:xena_system_admin_or_project_reader"
MEMBER = "rule:xena_system_admin_or_project_member"
ADMIN = "rule:admin_api"
ANYBODY = "rule:project_reader"

_BASE = (
    Rule("context_is_admin", "role:admin", "Who sees and does everything"),
    Rule("admin_api", "rule:context_is_admin", "What only administrators do"),
    Rule("project_reader", "role:reader", "Who has a role in the project of the token"),
    Rule(
        "xena_system_admin_or_project_reader",
        "rule:context_is_admin or (role:reader and project_id:%(project_id)s)",
        "Who looks at what is their project's",
    ),
    Rule(
        "xena_system_admin_or_project_member",
        "rule:context_is_admin or (role:member and project_id:%(project_id)s)",
        "Who changes what is their project's",
    ),
)

_DEFAULTS = {
    READER: (
        "volume:get",
        "volume:get_all",
        "volume:get_volume_metadata",
        "moorage:volume_story",
        "moorage:volume_explain",
        "volume:get_snapshot",
        "volume:get_all_snapshots",
        "volume:get_snapshot_metadata",
        "volume:get_transfer",
        "volume:get_all_transfers",
        "volume_extension:volume_tenant_attribute",
        "volume_extension:extended_snapshot_attributes",
        "volume_extension:quotas:show",
        "message:get",
        "message:get_all",
        "backup:get_all",
        "group:get_all",
        "group:get_all_group_snapshots",
        "limits_extension:used_limits",
        "os_compute_api:servers:index",
        "os_compute_api:servers:detail",
        "os_compute_api:servers:show",
        "os_compute_api:os-volumes-attachments:index",
        "os_compute_api:os-volumes-attachments:show",
    ),
    MEMBER: (
        "volume:create",
        "volume:update",
        "volume:delete",
        "volume:extend",
        "volume:extend_attached_volume",
        "volume:retype",
        "volume:update_readonly_flag",
        "volume:create_volume_metadata",
        "volume:update_volume_metadata",
        "volume:delete_volume_metadata",
        "volume:create_snapshot",
        "volume:update_snapshot",
        "volume:delete_snapshot",
        "volume:revert_to_snapshot",
        "volume:update_snapshot_metadata",
        "volume:delete_snapshot_metadata",
        "volume:create_transfer",
        "volume:accept_transfer",
        "volume:delete_transfer",
        "volume:attachment_create",
        "volume:attachment_update",
        "volume:attachment_delete",
        "volume:attachment_complete",
        "message:delete",
        "backup:create",
        "group:create",
        "group:create_group_snapshot",
        "volume:reimage",
        "volume_extension:volume_actions:upload_image",
        "os_compute_api:servers:delete",
        "os_compute_api:servers:update",
        "os_compute_api:servers:start",
        "os_compute_api:servers:stop",
        "os_compute_api:servers:reboot",
        "os_compute_api:os-volumes-attachments:create",
        "os_compute_api:os-volumes-attachments:update",
        "os_compute_api:os-volumes-attachments:delete",
    ),
    ADMIN: (
        "volume:force_delete",
        "volume_extension:volume_host_attribute",
        "volume_extension:volume_mig_status_attribute",
        "volume_extension:volume_admin_actions:reset_status",
        "volume_extension:volume_admin_actions:force_delete",
        "volume_extension:volume_admin_actions:force_detach",
        "volume_extension:snapshot_admin_actions:reset_status",
        "volume_extension:snapshot_admin_actions:force_delete",
        "volume_extension:type_create",
        "volume_extension:type_update",
        "volume_extension:type_delete",
        "volume_extension:types_extra_specs:create",
        "volume_extension:types_extra_specs:update",
        "volume_extension:types_extra_specs:delete",
        "volume_extension:access_types_extra_specs",
        "volume_extension:volume_type_access:get_all_for_type",
        "volume_extension:volume_type_access:addProjectAccess",
        "volume_extension:volume_type_access:removeProjectAccess",
        "volume_extension:volume_type_encryption:get",
        "volume_extension:volume_type_encryption:create",
        "volume_extension:default_get",
        "volume_extension:default_get_all",
        "volume_extension:default_set_or_update",
        "volume_extension:default_unset",
        "volume_extension:capabilities",
        "volume_extension:hosts",
        "volume_extension:list_manageable",
        "volume_extension:volume_manage",
        "volume_extension:volume_unmanage",
        "volume_extension:volume_admin_actions:migrate_volume",
        "volume_extension:volume_admin_actions:migrate_volume_completion",
        "volume_extension:volume_admin_actions:extend_volume_completion",
        "volume_extension:qos_specs_manager:get_all",
        "volume_extension:qos_specs_manager:create",
        "snapshot_extension:list_manageable",
        "snapshot_extension:snapshot_manage",
        "scheduler_extension:scheduler_stats:get_pools",
        "group:group_types:create",
        "clusters:get_all",
        "workers:cleanup",
        "volume:freeze_host",
        "volume:thaw_host",
        "volume:failover_host",
        "volume_extension:quotas:update",
        "volume_extension:quotas:delete",
        "volume_extension:quota_classes:get",
        "volume_extension:quota_classes:update",
        "volume_extension:services:index",
        "volume_extension:services:update",
        "identity:get_user",
        "identity:list_users",
        "identity:get_project",
        "identity:list_projects",
        "identity:list_role_assignments",
        "os_compute_api:os-availability-zone:detail",
        "os_compute_api:servers:index:get_all_tenants",
        "os_compute_api:servers:detail:get_all_tenants",
    ),
    "": (
        "identity:list_user_projects",
        "identity:list_roles",
        "identity:get_role",
        "identity:list_domains",
        "identity:get_domain",
    ),
    ANYBODY: (
        "volume_extension:type_get",
        "volume_extension:type_get_all",
        "volume_extension:types_extra_specs:index",
        "volume_extension:types_extra_specs:show",
        "volume_extension:availability_zone_list",
        "os_compute_api:os-availability-zone:list",
        "get_images",
        "get_image",
    ),
}

RULES = (
    *_BASE,
    *(
        Rule(name, check, f"Default of {name}")
        for check, names in _DEFAULTS.items()
        for name in names
    ),
)
