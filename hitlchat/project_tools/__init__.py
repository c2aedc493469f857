"""Python functions of the operator's own Django project as tools: `from hitlchat.project_tools import tool`."""

from hitlchat.project_tools.declaring import ToolError, tool

__all__ = ["ToolError", "tool"]
