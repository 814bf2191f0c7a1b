# SPDX-License-Identifier: BSD-2-Clause
"""The wire: what is common to services that speak as OpenStack's do."""
