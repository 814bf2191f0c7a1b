# SPDX-License-Identifier: BSD-2-Clause
"""Identity v3, where there is no Keystone."""
