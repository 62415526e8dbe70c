"""Signals in the processes that tests start."""

import signal


def heeding_ctrl_c() -> None:
    """For `preexec_fn`: tests run in the background ignore SIGINT, and their children would inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
