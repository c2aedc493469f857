"""What of the servers waits for an administrator, for the navigation of every page."""

from hitlchat.upstreams.models import ComposedTool, ServerState, ToolState, UpstreamServer

_AWAY = (ServerState.DOWN, ServerState.SIGN_IN, ServerState.UNUSABLE)


def count() -> int:
    """Withheld tools, and servers that don't answer: one query."""
    away = UpstreamServer.objects.filter(enabled=True, state__in=_AWAY).order_by().values_list("pk")
    withheld = ComposedTool.objects.filter(state=ToolState.WITHHELD).order_by().values_list("pk")
    return withheld.union(away, all=True).count()
