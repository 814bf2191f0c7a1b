# SPDX-License-Identifier: BSD-2-Clause
"""The planner's innermost loops: Python that Cython can compile.

Compiled they are fast, as they are they are their own reference. The types stand in the
``.pxd`` files. `moorage.htools.grid` fills the arrays from a state and reads them back;
`plans.balancing`, `survival.redundancy` and `placement.allocate` say the same in the
words of nodes and instances.
"""
