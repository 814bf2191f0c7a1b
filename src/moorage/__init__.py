"""Moorage: virtual machines on ordinary nodes, disks as citizens of their own."""
