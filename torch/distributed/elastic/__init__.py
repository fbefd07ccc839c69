"""Workers that are started again when one fails: not available yet."""
