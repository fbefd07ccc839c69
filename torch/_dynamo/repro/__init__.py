"""Programs that show a failure by themselves, and their reduction."""
