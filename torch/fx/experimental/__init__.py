"""Parts around graphs that may change: folding, typing, partitioning, tracing through the
dispatcher."""
