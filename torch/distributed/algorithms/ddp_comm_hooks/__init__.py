"""Hooks on the exchange of gradients of DistributedDataParallel."""
