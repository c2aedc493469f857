"""Rules of an installation. What a class of one's own needs: the verdicts, and what it is told about a call.

`evaluate(call, tool, context)`, plain or `async`, returns Allow, Ask, Refuse or Abstain. Whatever else comes of it,
an exception and nothing in time included, means that a person is asked.
"""

from hitlchat.gate.policies.rule import Abstain, Allow, Ask, CallView, Context, Refuse, ToolView, Verdict

__all__ = ["Abstain", "Allow", "Ask", "CallView", "Context", "Refuse", "ToolView", "Verdict"]
