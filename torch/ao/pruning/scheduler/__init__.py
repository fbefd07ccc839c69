"""How the share of zeros grows."""
