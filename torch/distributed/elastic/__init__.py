"""Workers that are started again when one fails."""
