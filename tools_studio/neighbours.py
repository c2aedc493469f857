"""Tools that share what they keep: what one of them stored or wrote, another can read."""

from collections.abc import Iterable, Iterator

from django.db.models import Q

from tools_studio import capabilities, variables
from tools_studio.capabilities import Capabilities
from tools_studio.models import Script, StoredVariable
from tools_studio.variables import Kept


def secrets(script: Script, granted: Capabilities) -> tuple[str, ...]:
    """The secrets of other tools that `script` may come to read, in the store of its group or in its folder."""
    if not granted.store and granted.files is None:
        return ()
    may_hide = Q(secret=True) | Q(value__startswith="${")
    rows = StoredVariable.objects.filter(may_hide).exclude(script=script).select_related("script")
    return variables.resolve(_shared(rows, script, granted)).hidden


def _shared(rows: Iterable[StoredVariable], script: Script, granted: Capabilities) -> Iterator[Kept]:
    for row in rows:
        if (granted.store and row.script.group == script.group) or _folder(row.script, granted):
            yield Kept(row.name, row.secret, row.value, row.fingerprint)


def _folder(other: Script, granted: Capabilities) -> bool:
    """Whether `other` has the same folder."""
    if granted.files is None:
        return False
    files = capabilities.parse(other.capabilities).files
    return files is not None and files.folder == granted.files.folder
