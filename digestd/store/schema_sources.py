"""Migrations for watched sources. Floor 3. See schema.py."""
