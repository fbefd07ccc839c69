"""Help for pipes: streams, decoders, snapshots."""
