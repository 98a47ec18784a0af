"""Frozen dataclasses, one file a noun, and nothing else. Floor 0.

All instants are timezone-aware UTC datetimes, all dates are plain ``datetime.date``; sequences are tuples.
"""
