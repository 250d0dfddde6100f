"""Diagnostics of representations: geometry, information, variance, and the statistics that judge them.

Nothing is imported here, so ``metrics.statistics`` can be used without torch.
"""
