"""What compiled code needs while it runs."""
