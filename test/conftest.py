"""What every test process needs before its first test."""

import signal

# A shell that starts the tests in the background leaves SIGINT ignored, and so would every process
# the tests start: Ctrl-C, which some of them send, would do nothing.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
