"""What we use of Streamlit beyond what it documents, as of SEEN. It may go in any version, so no
other file imports it from there; a test names what another version lacks."""

from streamlit import config, runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.web.server.server_util import get_display_address, get_url

__all__ = ["config", "get_display_address", "get_script_run_ctx", "get_url", "runtime"]
SEEN = "1.67"
# Attributes of what these return, by the class that has them.
USED = {
    "streamlit.runtime.Runtime": (
        "does_script_run_without_error",
        "get_client",
        "is_active_session",
        "uploaded_file_mgr",
    ),
    "streamlit.runtime.memory_uploaded_file_manager.MemoryUploadedFileManager": (
        "file_storage",
        "remove_session_files",
    ),
    "streamlit.runtime.scriptrunner.ScriptRunContext": (
        "is_history_navigation",
        "query_string",
        "session_id",
        "yield_check",
    ),
}
