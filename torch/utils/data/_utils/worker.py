"""What a dataset can ask about the process it is read in."""


def get_worker_info():
    """The worker this process is, or None in the main process, the only one there is so far."""
    return None
