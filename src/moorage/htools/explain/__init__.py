# SPDX-License-Identifier: BSD-2-Clause
"""Why a request is refused, and what would help; why something is wrong, or stays."""
