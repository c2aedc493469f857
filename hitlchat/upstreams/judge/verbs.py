"""What a tool says it does by its name: `delete_file`, `deleteFile`, `files.delete` and `deletefile` alike."""

import re
from itertools import pairwise

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

IRREVERSIBLE = {
    "delete", "drop", "purge", "wipe", "remove", "destroy", "erase", "truncate", "shred", "rm", "rmdir", "unlink",
}  # fmt: skip
_RUN_TOGETHER = ("delete", "purge", "wipe", "remove", "destroy", "erase", "truncate")
_OTHER_FORMS = {"d", "s", "r", "rs", "able", "ds"}
_FORCED = {("force", "push"), ("hard", "reset"), ("factory", "reset")}
# To drag and drop is a gesture.
_GESTURES = {("and", "drop"), ("drag", "drop")}
_EXECUTING = {"exec", "execute", "eval", "shell", "bash", "zsh", "powershell", "terminal", "cmd", "sudo", "spawn"}
_RUNNABLE = {
    "command", "commands", "code", "script", "python", "javascript", "js", "sql", "query", "program", "process",
}  # fmt: skip
_STARTING = {"run", "evaluate"}
_READING = {
    "get", "list", "read", "search", "find", "fetch", "show", "describe", "count", "query", "lookup", "check", "view",
}  # fmt: skip
_ADMINISTERING = {
    "admin", "administrator", "permission", "permissions", "role", "roles", "grant", "revoke", "acl", "policy", "iam",
    "password", "credential", "credentials", "owner", "impersonate",
}  # fmt: skip
_WRITING = {
    "write", "create", "update", "set", "put", "post", "patch", "add", "insert", "edit", "modify", "move", "rename",
    "merge", "push", "commit", "upload", "save", "append", "replace", "change", "assign", "close", "cancel", "archive",
    "enable", "disable", "start", "stop", "restart", "deploy", "install", "pay", "transfer", "buy", "sell", "order",
    "book", "refund", "approve", "toggle", "trigger", "schedule", "import", "apply",
}  # fmt: skip
_SENDING = {
    "send", "email", "mail", "post", "publish", "share", "upload", "forward", "notify", "tweet", "message", "submit",
    "reply", "invite", "sms", "webhook",
}  # fmt: skip


def words(name: str) -> list[str]:
    """`deleteHTTPFile` → delete, http, file."""
    return [word.lower() for word in _WORD.findall(name)]


def irreversible(name: str) -> str | None:
    """The verb by which it says that what it does can't be undone."""
    found = words(name)
    pairs = set(pairwise(found))
    if pairs & _FORCED:
        return "_".join(next(iter(pairs & _FORCED)))
    gestures = pairs & _GESTURES
    return next((word for word in found if _destroys(word) and not (word == "drop" and gestures)), None)


def _destroys(word: str) -> bool:
    if word in IRREVERSIBLE:
        return True
    return any(word.startswith(verb) and word[len(verb) :] not in _OTHER_FORMS for verb in _RUN_TOGETHER)


def executes(name: str) -> str | None:
    """The word by which it says that it runs commands or code."""
    found = words(name)
    if word := next((word for word in found if word in _EXECUTING), None):
        return word
    starts = not _STARTING.isdisjoint(found)
    return next((f"run {word}" for word in found if starts and word in _RUNNABLE), None)


def administers(name: str) -> bool:
    return _does(name, _ADMINISTERING)


def sends(name: str) -> bool:
    return _does(name, _SENDING)


def writes(name: str) -> bool:
    return irreversible(name) is not None or _does(name, _WRITING | _SENDING | _ADMINISTERING)


def _does(name: str, doing: set[str]) -> bool:
    """Not if it begins with a verb of reading, at most after a server's name: `get_post`, `slack_list_messages`."""
    found = words(name)
    only_reads = not _READING.isdisjoint(found[:2]) and "and" not in found
    return not only_reads and not doing.isdisjoint(found)
