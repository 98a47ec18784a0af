"""Digests, topics and pages as documents: mail, feeds, JSON, web pages. Floor 1: pure, given a jinja2 environment."""
