"""Ways to exchange and combine what ranks compute."""
