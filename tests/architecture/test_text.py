"""What may stand in no file of ours: reminders, and names of places that only one machine knows."""

import re
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.source import ROOT, read, text_files
from tests.tables import each_row

# The brackets keep these patterns from finding themselves.
REMINDERS = re.compile(r"\b(?:TO[D]O|FIX[M]E|XX[X])\b")
PLACES = re.compile(
    r"pypi[.]org|python[h]osted[.]org|registry[.]npm[j]s[.]org|deb[.]deb[i]an[.]org"  # registries
    r"|/wor[k]/|/roo[t]/|/tmp/v[/]|/opt/(?:py[p]i|whee[l]s)"  # folders
)
# Of what people read on pages: what else could write a time.
PAGES = ("templates/", "static/hitlchat/js/", *(f"hitlchat/{name}/" for name in ("templatetags", "chat", "approvals")))
TIMES = re.compile(
    r"<time\b|\|(?:date|time|timesince|timeuntil|naturaltime)\b|toLocale(?:Time|Date)|DateTimeFormat"
    r"|strftime|date_format\("
)
LOCKS = ("requirements.lock", "requirements-dev.lock")


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    lines = ((path, number, line) for path in text_files() for number, line in enumerate(read(path).splitlines(), 1))
    return [f"{path}:{number} {line.strip()}" for path, number, line in lines if pattern.search(line)]


def test_nothing_is_left_for_later() -> None:
    assert lines_with(REMINDERS) == []


def test_no_file_names_a_registry_or_a_folder_of_one_machine() -> None:
    assert lines_with(PLACES) == []


def test_one_filter_writes_every_time_of_a_page_and_one_script_rewrites_it() -> None:
    found = {line.partition(":")[0] for line in lines_with(TIMES) if line.startswith(PAGES)}
    assert found == {"hitlchat/templatetags/marks.py", "static/hitlchat/js/times.js"}


@each_row("name", LOCKS)
def test_a_lock_file_names_versions_and_hashes_and_nothing_else(name: str) -> None:
    version = r"[a-z0-9-]+==[A-Za-z0-9.]+( ; [a-z_]+ [!=<>]+ '[A-Za-z0-9.]+')* \\"
    digest = r"    --hash=sha256:[0-9a-f]{64}( \\)?"
    assert [line for line in read(name).splitlines() if not re.fullmatch(f"{version}|{digest}", line)] == []


def test_the_lock_files_have_what_pyproject_asks_for() -> None:
    project = tomllib.loads(read("pyproject.toml"))
    groups = project["dependency-groups"]
    everything = [
        *project["project"]["dependencies"],
        *groups["test"],
        *(d for d in groups["dev"] if isinstance(d, str)),
    ]
    assert unmet(project["project"]["dependencies"], pinned("requirements.lock")) == []
    assert unmet(everything, pinned("requirements-dev.lock")) == []


def test_what_runs_is_what_was_tested() -> None:
    assert pinned("requirements.lock").items() <= pinned("requirements-dev.lock").items()


def test_nothing_of_the_tests_is_installed_to_run() -> None:
    assert {"pytest", "playwright", "mypy", "ruff"} & pinned("requirements.lock").keys() == set()


def pinned(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / name).read_text(encoding="utf-8"), flags=re.MULTILINE))


def unmet(wanted: list[str], found: dict[str, str]) -> list[str]:
    requirements = map(Requirement, wanted)
    return [
        str(each) for each in requirements if not each.specifier.contains(found.get(canonicalize_name(each.name), "0"))
    ]
