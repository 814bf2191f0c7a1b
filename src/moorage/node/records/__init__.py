# SPDX-License-Identifier: BSD-2-Clause
"""What an agent keeps in its directory: attachments, fences, whose orders it took."""
