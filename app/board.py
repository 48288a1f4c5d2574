"""What a teacher writes on the board: the addresses of this machine, and one as a QR code."""

import os
import socket

import psutil

ADDRESS = "HEADLIGHT_ADDRESS"  # set by app/serve.py, where a class is served


def address() -> str:
    """Where the class finds the app; "" where nobody but this machine can."""
    return os.environ.get(ADDRESS, "")


def addresses(port: int) -> list[str]:
    """Where others may find a server of this machine, the likeliest first."""
    hosts = [
        one.address
        for name, every in psutil.net_if_addrs().items()
        for one in every
        if one.family == socket.AF_INET and psutil.net_if_stats()[name].isup
        and not one.address.startswith(("127.", "169.254."))
    ]  # fmt: skip
    likeliest = _towards_others()
    hosts.sort(key=lambda host: host != likeliest)
    return [f"http://{host}:{port}" for host in (*hosts, socket.gethostname())]


def _towards_others() -> str:
    """The address of this machine on the way to other networks; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an address for documentation: RFC 5737
            return probe.getsockname()[0]
        except OSError:
            return ""


def qr_code(text: str) -> str:
    """As SVG, dark on white in any theme."""
    import segno  # for speed: few look at it

    return segno.make(text, error="m").svg_inline(scale=6, dark="#000", light="#fff")
