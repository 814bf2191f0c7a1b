# SPDX-License-Identifier: BSD-2-Clause
"""Who is who: users, projects and roles, for a cloud without a Keystone."""
