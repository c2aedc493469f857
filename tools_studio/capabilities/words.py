"""What a tool can do, in sentences for the person who decides."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tools_studio.capabilities.declared import Capabilities, Fetch


def sentences(granted: "Capabilities") -> list[str]:
    """One sentence for each power, the strongest first."""
    said = ["It can destroy what cannot be brought back."] if granted.destructive else []
    said += [_email(granted.email)] if granted.email else []
    said += [f"It can send data to the address kept in {listed(granted.webhook)}."] if granted.webhook else []
    said += [_fetch(granted.fetch)] if granted.fetch else []
    if granted.files:
        does = "read, write and delete" if granted.files.mode == "write" else "read"
        said.append(f"It can {does} the files in the folder {granted.files.folder}.")
    said += ["It can read its secrets."] if granted.secrets else []
    said += ["It can read and change the data it keeps (store)."] if granted.store else []
    said += ["It can read the clock."] if granted.now else []
    said += ["It can use chance."] if granted.random else []
    return said + (["It can wait for some seconds."] if granted.sleep else [])


def listed(words: tuple[str, ...]) -> str:
    """`a, b and c`."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _fetch(fetch: "Fetch") -> str:
    does = "read from" if fetch.only_reads else "reach"
    named = listed(fetch.hosts) if fetch.hosts else ""
    if fetch.mode == "allowlist":
        return f"It can {does} {named}."
    where = "any public host on the internet, " + ("over https" if fetch.mode == "public" else "at any port")
    return f"It can {does} {where}{f', and {named}' if named else ''}."


def _email(recipients: tuple[str, ...]) -> str:
    if "*" in recipients:
        return "It can send e-mail to anyone."
    named = tuple(f"anyone at {each[1:]}" if each[0] == "@" else each for each in recipients)
    return f"It can send e-mail to {listed(named)}."
