"""Launching workers that may fail and come back: agents, rendezvous, timers, events and metrics."""
