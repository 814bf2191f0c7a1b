# SPDX-License-Identifier: BSD-2-Clause
"""What --help says of the options that the placement programs share."""

from typing import Final

ABOUT: Final = {
    "text": "read the cluster from a file in the text format",
    "rapi": "ask the cluster at this address over RAPI; file://DIR reads saved answers",
    "luxi": (
        "ask the master on this machine; a socket other than the usual one is "
        "glued on (-L[SOCKET])"
    ),
    "ialloc": "read the cluster from a message to an allocator",
    "simulate": (
        "plan on an empty group instead: policy,nodes,disk,memory,cpus; repeat "
        "it for several"
    ),
    "print_nodes": (
        "print the nodes before and after; FIELDS names columns, with + before "
        "them to add to the usual ones (-p[FIELDS])"
    ),
    "print_instances": "print the instances before and after",
    "print_commands": (
        "print the gnt-* commands that make the plan, or write them to a script "
        "(-C[FILE])"
    ),
    "save": "write the cluster before and after to FILE with endings",
    "verbose": "say more; repeat it for more still",
    "quiet": "say less",
    "offline": "plan as if this node were offline",
    "group": "work on this node group, by name or UUID",
    "max_length": "stop after so many steps or new instances; negative for no limit",
    "min_score": "stop when the score is this near to the least possible one",
    "min_gain": "least gain of a step below --min-gain-limit",
    "min_gain_limit": "score above which any gain is good enough",
    "max_cpu": (
        "most virtual processors on one processor, instead of what the policy says"
    ),
    "min_disk": "share of a node's disk to leave free, from 0 to 1",
    "no_disk_moves": "copy no disks: fail over and migrate only",
    "no_instance_moves": "leave primaries where they are: replace secondaries only",
    "evac_mode": "move only instances that have a node offline or drained",
    "restricted": "migrate off offline and drained nodes only",
    "ignore_soft_errors": "skip the checks that protect comfort only",
    "no_capacity_checks": "do not ask whether every node can be lost",
    "select": "move only these instances (names with commas between)",
    "exclude": "move any but these instances (names with commas between)",
    "exclusion_tags": (
        "keep instances apart that share a tag with one of these prefixes"
    ),
    "dynu": "read measured load from a file: name cpu mem disk net",
    "ignore_dynu": "count no load at all, neither measured nor even",
    "mond": "ask the monitoring daemons for the load (yes or no; yes without a word)",
    "mond_data": "read what the monitoring daemons said from a file",
    "mond_xen": "use the load of each instance, which daemons on Xen tell",
    "mond_exit": "end if the daemon of a node says nothing",
    "kvm_memory": "MiB that the system of a KVM node uses; 0 for what the node reports",
    "machine": "print KEY=value lines for programs (yes or no; yes without a word)",
    "accept_existing": (
        "go on where a node cannot be lost already, but break nothing else"
    ),
    "independent": "let a group that is in disorder not stop the others",
    "explain": "say what refuses, with its numbers, and the smallest change that helps",
}
