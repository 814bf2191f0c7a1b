# SPDX-License-Identifier: BSD-2-Clause
"""RAPI 2, Ganeti's interface over HTTPS: a door with nothing behind it but LUXI.

Each resource is declared once (:mod:`.routes`): path, method, arguments, the opcode or
the query that answers it, and who may ask. Routes, the OpenAPI document and the page of
the reference derive from that.
"""
