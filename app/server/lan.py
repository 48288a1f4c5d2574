"""The addresses of this machine in its network, and a QR code: what a teacher writes on the
board. And the proxies before it, which say whose address a request comes from."""

import ipaddress
import os
import socket

import psutil

ADDRESS = "HEADLIGHT_ADDRESS"  # in the environment of each process that serves a class

PROXY = "HEADLIGHT_PROXY"  # in the environment: addresses of proxies
BELIEVED = "FORWARDED_ALLOW_IPS"  # by uvicorn (0.54): those whose X-Forwarded-For it reads


def proxies() -> list[str]:
    """The proxies that the environment names, as addresses or networks. Raises ValueError."""
    named = os.environ.get(PROXY, "")
    try:
        return [str(ipaddress.ip_network(each)) for each in named.replace(",", " ").split()]
    except ValueError:
        raise ValueError(
            f"{PROXY} is {named[:80]!r}. Give the proxy's address, such as 127.0.0.1."
        ) from None


def class_address() -> str:
    """The address at which a class finds the app; "" if only this machine can reach it."""
    return os.environ.get(ADDRESS, "")


def addresses(port: int) -> list[str]:
    """The addresses at which others may reach a server on this machine, the likeliest first. If the
    environment names one, only that: behind a proxy or in a container, this machine cannot know."""
    if named := class_address():
        return [named]
    hosts = [
        interface.address
        for name, interfaces in psutil.net_if_addrs().items()
        for interface in interfaces
        if interface.family == socket.AF_INET and psutil.net_if_stats()[name].isup
        and not interface.address.startswith(("127.", "169.254."))
    ]  # fmt: skip
    likeliest = _towards_others()
    hosts.sort(key=lambda host: host != likeliest)
    return [f"http://{host}:{port}" for host in (*hosts, socket.gethostname())]


def _towards_others() -> str:
    """The address of the interface that leads to other networks; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an address for documentation: RFC 5737
            return probe.getsockname()[0]
        except OSError:
            return ""


def qr_code(text: str) -> str:
    """As SVG, dark on white in any theme."""
    import segno  # imported late: few users open the QR code

    return segno.make(text, error="m").svg_inline(scale=6, dark="#000", light="#fff")
