"""Schedules, the training loop, checkpoints, and the content-addressed store of finished runs."""
