"""Both stores of rooms."""

import shutil
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from headlight.app.server import room_stores
from headlight.app.server.room_stores import RedisStore
from tests.waiting import wait_until


def _answers(address: str) -> bool:
    with suppress(OSError):
        RedisStore(address).close()
        return True
    return False


@contextmanager
def redis_server(folder: Path):
    """The address of Redis, which writes into a folder what it has."""
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed: apt-get install redis-server")
    socket = folder / "socket"
    command = ["redis-server", "--port", "0", "--unixsocket", socket, "--dir", folder, "--save", ""]
    with subprocess.Popen([*command, "--appendonly", "yes"], stdout=subprocess.DEVNULL) as process:
        wait_until(_answers, f"unix://{socket}")
        yield f"unix://{socket}"
        process.terminate()


@pytest.fixture(scope="session")
def redis_address(tmp_path_factory):
    with redis_server(tmp_path_factory.mktemp("redis")) as address:
        yield address


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.long)])
def where(request, tmp_path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "rooms.sqlite")
    address = request.getfixturevalue("redis_address")
    store = RedisStore(address)
    store.redis.flushall()
    store.close()
    return address


@pytest.fixture
def store(where):
    store = room_stores.open_store(where)
    yield store
    store.close()
