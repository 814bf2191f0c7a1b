# SPDX-License-Identifier: BSD-2-Clause
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, infer_types=True
"""What the kernel knows: nodes and instances as rows, and tables of what is rare."""

import cython

from moorage.htools.kernel import columns as col


class Tables:
    """Arrays that whoever asks fills and changes, and the plain questions about them.

    Parameters
    ----------
    arrays
        Ten arrays:

        rows : ((n + 3) * W,)
            Columns of each node, then three rows of scratch.
        insts : (m * IW,)
            Columns of each instance.
        peers : (n * n,)
            Memory that the first node keeps for instances of the second, MiB.
        tagged : (n * tags,)
            How many primaries of a node carry a tag.
        taglist : (any,) of int
            Tags of the instances, one after the other.
        active, merged, adding : (a,), the first of int
            Values that differ, the reserve first and those that are summed last, and
            the weights of each with its equals: of the spread, and of the sum.
        weights : (any,)
            Of the metrics, in their order; those that are counted are named in
            `moorage.htools.kernel.columns`.
        shares : (any * SW,) of int
            Columns of each share.
    sizes : tuple of int
        Nodes in view, instances that may move, exclusion tags, storage units, and how
        many of these, the first ones, are part of the score.
    force : bool
        Skip the checks that protect comfort only.
    """

    def __init__(self, arrays, sizes, force):
        self.n, self.m, self.tags, self.units, self.counted = sizes
        self.shared = len(arrays[9]) // col.SW
        self.k, self.force = self.shared + self.counted, force
        self.held = list(arrays)
        self.rows, self.insts = self.doubles(arrays[0]), self.doubles(arrays[1])
        self.peers, self.tagged = self.doubles(arrays[2]), self.doubles(arrays[3])
        self.taglist, self.active = self.integers(arrays[4]), self.integers(arrays[5])
        self.merged, self.actives = self.doubles(arrays[6]), len(arrays[5])
        self.adding, self.summed = self.doubles(arrays[7]), self.actives
        while self.summed > 1 and self.adding[self.summed - 1] != 0.0:
            self.summed -= 1
        self.weights, self.metrics = self.doubles(arrays[8]), len(arrays[8])
        self.shares = self.integers(arrays[9])
        self.barred = self.bounded = self.classed = False
        self.places = 0

    def know_paths(self, paths):
        """Take where live migration may go.

        Parameters
        ----------
        paths : (n * n,) of int
            1 where it may go from the first node to the second.
        """
        self.held.append(paths)
        self.paths, self.barred = self.integers(paths), True

    def know_reach(self, storages, reach):
        """Take where the disks of instances can be used.

        Parameters
        ----------
        storages : (m,) of int
            On which storage the disks of an instance are.
        reach : (storages * n,) of int
            1 where the node reaches all disks that are there.
        """
        self.held += [storages, reach]
        self.storages, self.reach = self.integers(storages), self.integers(reach)
        self.bounded = True

    def know_choices(self, classes, choices):
        """Take on which nodes memory alone decides.

        Parameters
        ----------
        classes : (m,) of int
            The class of each instance; -1 where the room for its disks decides, too.
        choices : (classes * n,) of int
            1 where instances of a class may run if there is memory for them.
        """
        self.held += [classes, choices]
        self.classes, self.choices = self.integers(classes), self.integers(choices)
        self.classed = True

    def know_places(self, places, stands, wishes, crowd):
        """Take the failure domains.

        Parameters
        ----------
        places : int
            How many location tags there are.
        stands : (n * places,)
            1 where a node carries a tag.
        wishes : (m * places,)
            1 where an instance desires a tag.
        crowd : (places * tags,)
            How many primaries with an exclusion tag run within a domain.
        """
        self.held += [stands, wishes, crowd]
        self.places, self.stands = places, self.doubles(stands)
        self.wishes, self.crowd = self.doubles(wishes), self.doubles(crowd)

    def know_units(self, tables, wanted, sizes):
        """Take the storage units.

        Parameters
        ----------
        tables
            stock : ((n + 3) * units,)
                Free room, with rows of scratch as in `rows`, MiB.
            totals, floors, kinds : (n * units,)
                Size and least free room, MiB; `ABSENT`, `COUNTED` or `BOUNDLESS`.
            seen : (n * units,)
                1 where the free share is known.
        wanted : (any,) of int
            Units of the instances, one after the other; -1 for one that no node has,
            -2 - u for one that has the room of another, and may be missing.
        sizes : (any,)
            How much of each, MiB.
        """
        self.held += [*tables, wanted, sizes]
        self.stock, self.totals = self.doubles(tables[0]), self.doubles(tables[1])
        self.floors, self.kinds = self.doubles(tables[2]), self.doubles(tables[3])
        self.seen = self.doubles(tables[4])
        self.wanted, self.sizes = self.integers(wanted), self.doubles(sizes)

    def doubles(self, values: cython.double[::1]):
        """Return where an array starts; a view of it when not compiled."""
        return cython.address(values[0]) if cython.compiled else memoryview(values)

    def integers(self, values: cython.int[::1]):
        """Return where an array of integers starts, likewise."""
        return cython.address(values[0]) if cython.compiled else memoryview(values)

    def space(self, size):
        """Return room for some numbers, all 0, which lives as long as this does."""
        made = memoryview(bytearray(8 * max(1, size))).cast("d")
        self.held.append(made)
        return self.doubles(made)

    # Compiled, these are in the .pxd file: whoever uses them gets them inline.
    if not cython.compiled:

        def row(self, j):
            """Return the columns of a node."""
            return self.rows[j * col.W :]

        def inst(self, i):
            """Return the columns of an instance."""
            return self.insts[i * col.IW :]

        def share(self, k):
            """Return the columns of a share."""
            return self.shares[k * col.SW :]

        def home(self, i):
            """Return where an instance runs."""
            return int(self.inst(i)[col.I_P])

        def second(self, i):
            """Return where an instance has its second copy, -1 for nowhere."""
            return int(self.inst(i)[col.I_S])

        def verbs(self, i):
            """Return the verbs that an instance may use, one bit each."""
            return int(self.inst(i)[col.I_VERBS])

        def is_off(self, j):
            """Say whether a node is offline."""
            return self.row(j)[col.OFFLINE] != 0.0

        def kind(self, i):
            """Return the class of an instance, by the nodes that it may choose."""
            return self.classes[i] if self.classed else 0

        def chooses(self, kind, j):
            """Say whether instances of a class may run on a node."""
            return not self.classed or self.choices[kind * self.n + j] != 0

        def migrates(self, a, b):
            """Say whether live migration may go from a to b."""
            return not self.barred or self.paths[a * self.n + b] != 0

        def reaches(self, i, j):
            """Say whether the disks of an instance can be used on a node."""
            return not self.bounded or self.reach[self.storages[i] * self.n + j] != 0

    def first(self, i, column):
        """Return where a list of an instance starts: its tags, or its wants."""
        return cython.cast(cython.int, self.inst(i)[column])

    def last(self, i, column):
        """Return where the list ends."""
        t = self.inst(i)
        return cython.cast(cython.int, t[column] + t[column + 1])

    def clashes(self, i, node):
        """Return how many exclusion tags of an instance a node has already."""
        found = 0
        for c in range(self.first(i, col.I_TAG), self.last(i, col.I_TAG)):
            if self.tagged[node * self.tags + self.taglist[c]] > 0.0:
                found += 1
        return found

    def unclashes(self, i, node):
        """Return how many clashes end when an instance leaves a node."""
        found = 0
        for c in range(self.first(i, col.I_TAG), self.last(i, col.I_TAG)):
            if self.tagged[node * self.tags + self.taglist[c]] > 1.0:
                found += 1
        return found

    def mark(self, i, node, by):
        """Count the exclusion tags of an instance on a node."""
        for c in range(self.first(i, col.I_TAG), self.last(i, col.I_TAG)):
            self.tagged[node * self.tags + self.taglist[c]] += by
            if self.inst(i)[col.I_REAL] == 0.0 or self.is_off(node):
                continue
            for g in range(self.places):
                if self.stands[node * self.places + g] != 0.0:
                    self.crowd[g * self.tags + self.taglist[c]] += by

    def common(self, a, b):
        """Return how many failure domains two nodes share."""
        found = 0.0
        for g in range(self.places):
            found += self.stands[a * self.places + g] * self.stands[b * self.places + g]
        return found

    def missed(self, i, j):
        """Return how many desired locations of an instance a node does not offer."""
        found = self.inst(i)[col.I_WISHES]
        for g in range(self.places):
            found -= self.wishes[i * self.places + g] * self.stands[j * self.places + g]
        return found

    def stands_in(self, j, place):
        """Say whether a node carries a location tag; -1 carries none."""
        return j >= 0 and self.stands[j * self.places + place] != 0.0

    def crowds(self, i, a, b):
        """Return how the crowding in failure domains changes from a to b; -1: nowhere.

        An instance of a tag is one too many in a domain where there is one already.
        """
        found = 0.0
        for g in range(self.places):
            here, there = self.stands_in(a, g), self.stands_in(b, g)
            if here == there:
                continue
            for c in range(self.first(i, col.I_TAG), self.last(i, col.I_TAG)):
                count = self.crowd[g * self.tags + self.taglist[c]]
                if there and count >= 1.0:
                    found += 1.0
                elif here and count >= 2.0:
                    found -= 1.0
        return found
