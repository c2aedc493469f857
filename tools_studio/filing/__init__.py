"""Text files that a tool keeps below one folder of the server's data, and no way out of it."""

from tools_studio.filing.functions import grants

__all__ = ["grants"]
