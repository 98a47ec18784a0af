"""Benchmarks: our figures beside a limit or a yardstick, measured in pairs on the same machine in one run."""
