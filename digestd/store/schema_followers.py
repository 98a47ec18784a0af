"""Migrations for readers, subscriptions, digests and the outbox. Floor 3. See schema.py."""
