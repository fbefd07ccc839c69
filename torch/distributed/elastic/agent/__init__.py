"""Agents: the processes that start and watch workers."""
