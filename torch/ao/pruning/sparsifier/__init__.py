"""What chooses the zeros of a weight."""
