"""Whole simulated worlds: what is published, what sources show of it, who follows, and an oracle that knows the truth."""
