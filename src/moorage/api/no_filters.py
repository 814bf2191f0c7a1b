# SPDX-License-Identifier: BSD-2-Clause
"""What is told of filters of jobs, through every door."""

WHY = (
    "jobs are not filtered; gnt-cluster queue drain refuses new ones, --priority and "
    "gnt-job change-priority let some come first, --max-running-jobs limits them"
)
