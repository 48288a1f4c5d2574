"""A browser tab as the server sees it: Streamlit's own messages, without a browser.

It keeps what a browser keeps: the value of every widget, the address, and the messages that the
server may refer to by their hash. As of Streamlit 1.67.
"""

import asyncio
import itertools
import json
import time
import urllib.request
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlencode

from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, WebSocketException

DRAWN = ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY
LARGEST = 200 * 2**20  # bytes of a message, as in Streamlit's own front end


class Lost(ConnectionError):
    """The connection is gone, or was never there."""


@dataclass
class Page:
    """What one run of the script drew. `arrived`: key of an element → seconds after the request."""

    elements: dict = field(default_factory=dict)  # key, or text of an <i> → the element
    arrived: dict[str, float] = field(default_factory=dict)
    exceptions: list[str] = field(default_factory=list)
    alerts: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)  # of the alerts those in red
    seconds: float = 0.0
    received: int = 0  # bytes

    def bytes_of(self, key: str) -> bytes:
        return self.elements[key].bidi_component.bytes

    def json_of(self, key: str) -> str:
        return self.elements[key].bidi_component.json


class Tab:
    """One session. `parameters` are those of its address, `cookie` what it sends with every
    request."""

    def __init__(self, address: str):
        self.address, self.cookie = address, ""
        self.parameters: dict[str, list[str]] = {}
        self.widgets: dict[str, WidgetState] = {}  # id → value
        self.ids: dict[str, str] = {}  # key → id
        self.bound: dict[str, tuple[str, list[str]]] = {}  # id → its parameter and default
        self.kept: dict[str, tuple[int, ForwardMsg]] = {}  # hash → the run it came in, the message
        self.fragments: dict[str, str] = {}  # id → the fragment that it is in
        self.path = ""  # of the page that is opened first
        self.pages: dict[str, str] = {}  # path → hash of a page
        self.page, self.session, self.socket = "", "", None
        self.runs = itertools.count(1)
        self.longest_kept = 2

    @property
    def query(self) -> str:
        return urlencode(self.parameters, doseq=True)

    async def open(self) -> Page:
        """Connect, as the session of before if there was one, and run the script. Raises Lost."""
        if not self.session:
            self._eat(await asyncio.to_thread(_cookie_of, self.address))
        address = self.address.replace("http", "ws", 1) + "/_stcore/stream"
        # The name of the protocol, a token against forgery (none here), the session to go on with.
        protocols = ["streamlit", "PLACEHOLDER_AUTH_TOKEN", *filter(None, [self.session])]
        headers = {"Cookie": self.cookie} if self.cookie else {}
        try:
            self.socket = await connect(
                address,
                subprotocols=protocols,
                origin=self.address,
                additional_headers=headers,
                max_size=LARGEST,
                open_timeout=60,
                ping_interval=None,
                compression=None,
            )
        except (OSError, TimeoutError, WebSocketException) as error:
            raise Lost(f"{type(error).__name__}: {error}") from error
        self._eat(self.socket.response.headers.get("Set-Cookie", ""))
        return await self.run()

    def _eat(self, cookie: str) -> None:
        """What the server wants to be told with every request."""
        self.cookie = cookie.partition(";")[0] or self.cookie

    async def close(self) -> None:
        if self.socket is not None:
            await self.socket.close()

    async def type(self, key: str, text: str) -> Page:
        return await self.give(key, "string_value", text)

    async def switch(self, key: str) -> Page:
        """A toggle, or whether a box is open."""
        return await self.give(key, "bool_value", not self.widgets[self.ids[key]].bool_value)

    async def click(self, key: str) -> Page:
        return await self.give(key, "trigger_value", True)

    async def tell(self, key: str, name: str, value) -> Page:
        """What a component of ours hears: an event and its value."""
        events = f"$$STREAMLIT_INTERNAL_KEY_{self.ids[key]}__events"
        self.ids[events], self.fragments[events] = events, self.fragments[self.ids[key]]
        told = json.dumps([{"event": name, "value": value}])
        return await self.give(events, "json_trigger_value", told)

    async def give(self, key: str, kind: str, value) -> Page:
        """Give a widget a value, and run the script. Raises Lost, and KeyError where there is no
        such widget."""
        state = WidgetState(id=self.ids[key])
        if kind == "string_array_value":
            state.string_array_value.data.append(value)
        else:
            setattr(state, kind, value)
        self._remember(state)
        try:
            return await self.run()
        finally:
            if kind.endswith("trigger_value"):
                self.widgets.pop(state.id, None)

    def _remember(self, state: WidgetState) -> None:
        self.widgets[state.id] = state
        if state.id in self.bound:
            parameter, default = self.bound[state.id]
            texts = _texts(state)
            self.parameters.pop(parameter, None)
            if texts != default:
                self.parameters[parameter] = texts

    async def go(self, address: str) -> Page:
        """Follow an address as by the browser's Back. Raises Lost."""
        path, _, query = address.lstrip("/").partition("?")
        self.parameters = parse_qs(query, keep_blank_values=True)
        self.page = self.pages.get(path, self.page)
        return await self.run(is_back=True)

    async def run(self, is_back: bool = False) -> Page:
        """Ask for a run, and take what it draws, to its end. Raises Lost."""
        message = BackMsg()
        request = message.rerun_script
        request.query_string, request.page_script_hash = self.query, self.page
        request.is_history_navigation = is_back
        if not self.page:
            request.page_name = self.path
        request.widget_states.widgets.extend(self.widgets.values())
        request.cached_message_hashes.extend(self.kept)
        request.context_info.url = self.address
        number, start = next(self.runs), time.perf_counter()
        try:
            await self.socket.send(message.SerializeToString())
            page = await self._receive(number, start)
        except ConnectionClosed as error:
            raise Lost(str(error)) from error
        page.seconds = time.perf_counter() - start
        old = [h for h, (run, _) in self.kept.items() if run <= number - self.longest_kept]
        for hash_ in old:
            del self.kept[hash_]
        return page

    async def _receive(self, number: int, start: float) -> Page:
        page, drawn, run, regions = Page(), set(), "", set()
        async for data in self.socket:
            page.received += len(data)
            message = ForwardMsg.FromString(data)
            if message.WhichOneof("type") == "ref_hash":
                reference, message = message, ForwardMsg()
                message.CopyFrom(self.kept[reference.ref_hash][1])
                message.metadata.CopyFrom(reference.metadata)
                self.kept[message.hash] = number, message
            elif message.metadata.cacheable:
                self.kept[message.hash] = number, message
            match message.WhichOneof("type"):
                case "new_session":
                    self._begin(message.new_session)
                    run, drawn = message.metadata.run.script_run_id, set()
                    regions = {*message.metadata.run.fragment_ids}
                case "navigation":
                    self.page = message.navigation.page_script_hash
                    self.pages = {
                        page.url_pathname: page.page_script_hash
                        for page in message.navigation.app_pages
                    }
                case "page_info_changed":
                    query = message.page_info_changed.query_string
                    self.parameters = parse_qs(query, keep_blank_values=True)
                case "delta":
                    self._draw(message, page, drawn, time.perf_counter() - start)
                case "script_finished":
                    over = message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN
                    if run and over and message.metadata.run.script_run_id in ("", run):
                        if message.script_finished in DRAWN:
                            # What is not drawn any more has no value either.
                            self.widgets = {
                                i: widget
                                for i, widget in self.widgets.items()
                                if i in drawn or (regions and self.fragments.get(i) not in regions)
                            }
                        return page
                case "session_event":
                    if message.session_event.HasField("script_changed_on_disk"):
                        raise Lost("the script changed on disk")
        raise Lost("the server closed the connection")

    def _begin(self, message) -> None:
        self.session = message.initialize.session_id
        self.longest_kept = message.config.max_cached_message_age
        self.page = self.page or message.page_script_hash

    def _draw(self, message: ForwardMsg, page: Page, drawn: set[str], seconds: float) -> None:
        delta = message.delta
        region = delta.fragment_id
        if delta.WhichOneof("type") == "add_block":
            box = delta.add_block
            if box.HasField("popover") and box.popover.id:
                self.fragments[box.popover.id] = region
                self._meet(box.popover.id, "bool_value", box.popover.open, drawn)
                self.ids[_key(box.popover.id)] = box.popover.id
            return
        if delta.WhichOneof("type") != "new_element":
            return
        element = delta.new_element
        kind = element.WhichOneof("type")
        content = getattr(element, kind)
        id_ = getattr(content, "id", "")
        key = _key(id_) or getattr(content, "label", "") or kind
        page.elements[key] = element
        page.arrived.setdefault(key, seconds)
        if kind == "exception":
            page.exceptions.append(f"{content.type}: {content.message}")
        if kind == "alert":
            page.alerts.append(content.body)
            if content.format == Alert.ERROR:
                page.errors.append(content.body)
        if kind in VALUES:
            value_kind, value, default = VALUES[kind](content)
            self._meet(id_, value_kind, value, drawn, content.set_value)
            if content.query_param_key:
                self.bound[id_] = content.query_param_key, default
        if id_:
            self.ids[key], self.fragments[id_] = id_, region
            drawn.add(id_)

    def _meet(self, id_: str, kind: str, value, drawn: set[str], told: bool = False) -> None:
        """A widget as it is drawn: it keeps its value, unless the server tells it another."""
        drawn.add(id_)
        if told or id_ not in self.widgets:
            state = WidgetState(id=id_)
            if kind == "string_array_value":
                state.string_array_value.data.extend(value)
            elif value is not None:
                setattr(state, kind, value)
            self.widgets[id_] = state


def _cookie_of(address: str) -> str:
    """What the page itself gives. Raises Lost."""
    try:
        with urllib.request.urlopen(address, timeout=60) as page:
            page.read()
            return page.headers.get("Set-Cookie", "")
    except OSError as error:
        raise Lost(str(error)) from error


def _key(id_: str) -> str:
    """The key that a script gave an element; its id is “$$ID-”, a hash, “-” and the key."""
    parts = id_.split("-", 2)
    return parts[2] if len(parts) == 3 and parts[2] != "None" else ""


def _texts(state: WidgetState) -> list[str]:
    """A value as the address has it."""
    kind = state.WhichOneof("value")
    if kind == "string_array_value":
        return list(state.string_array_value.data)
    value = getattr(state, kind)
    return [str(value).lower() if kind == "bool_value" else str(value)]


def _text(box):
    value = box.value if box.set_value else box.default
    return "string_value", value, [box.default]


def _select(box):
    default = box.options[box.default] if box.HasField("default") else None
    value = box.raw_value if box.set_value else default
    return "string_value", value, [default]


def _options(box):
    default = [box.options[i].content for i in box.default]
    value = list(box.raw_values) if box.set_value else default
    return "string_array_value", value, default


def _toggle(box):
    value = box.value if box.set_value else box.default
    return "bool_value", value, [str(box.default).lower()]


# Element → kind of its value, the value, and the default as texts.
VALUES = {
    "text_area": _text,
    "text_input": _text,
    "selectbox": _select,
    "button_group": _options,
    "checkbox": _toggle,
}
