"""Whether a port is free, before Streamlit listens there."""

import socket
import sys

TRIED = 100


def is_free(port: int, host: str = "") -> bool:
    """Whether a server could listen on this port; without a host, on all addresses of this
    machine."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError):
            return False
    return True


def problem(port: int) -> str:
    """Why the app cannot listen on this port; "" if it can."""
    if not 0 < port < 2**16:
        return f"{port} is not a port: choose a number from 1 to 65535."
    if is_free(port):
        return ""
    others = (other for other in range(port + 1, min(port + TRIED, 2**16)) if is_free(other))
    other = next(others, None)
    hint = f"; {other} is free." if other else "."
    return f"Port {port} is used by another program{hint}"


def check(port: int) -> None:
    """Exits with a message if the port is taken or invalid."""
    if why := problem(port):
        sys.exit(why)
