"""Use cases, one file each: pure functions put between ports. Floor 4."""
