"""The files an operator starts from: they name settings that exist, and agree with the program and with each other."""

import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from django.conf import settings

from hitlchat.asgi import LARGEST_BODY
from hitlchat.health import PROBES
from tests.processes import ROOT
from tests.tables import each_row

Json = dict[str, Any]

# The pages below /docs/.
DOCUMENTS: Final = ("README.md", "CHANGELOG.md", "SECURITY.md", "docs/*.md")
RECIPES: Final = ("Dockerfile", "compose.yaml", "docs/deploying.md", *(f"deploy/{name}" for name in (
    "Caddyfile", "hitlchat", "hitlchat.env", "hitlchat.service", "nginx.conf",
    "kubernetes/hitlchat.yaml", "kubernetes/migrate.yaml", "kubernetes/settings.yaml",
)))  # fmt: skip
# Where the program reads the environment.
READERS: Final = ("hitlchat/settings.py", "hitlchat/base/environment.py", "hitlchat/management/commands/serve.py")
# Variables of others: of Compose and this compose.yaml, the images in it, Python, and the operator's own tools.
OTHERS: Final = {
    *("COMPOSE_PROFILES", "HITLCHAT_SITE", "HITLCHAT_SERVERS", "SERVICES_PASSWORD"),
    *("POSTGRES_USER", "POSTGRES_PASSWORD", "REDISCLI_AUTH", "PYTHON_IMAGE"),
    *("PATH", "TMPDIR", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"),
}
VARIABLE: Final = re.compile(r"(?<![\w${-])([A-Z][A-Z0-9_]{3,})(?==|: )")


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def documents(path: str) -> list[Json]:
    """The documents of a YAML file."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: `make setup-dev` installs it")
    return [*yaml.safe_load_all(read(path))]


@cache
def services() -> dict[str, Json]:
    return dict(documents("compose.yaml")[0]["services"])


@cache
def kubernetes() -> dict[str, Json]:
    """Every object of the manifests by its kind: there is one of each."""
    files = ("settings", "migrate", "hitlchat")
    return {each["kind"]: each for name in files for each in documents(f"deploy/kubernetes/{name}.yaml")}


def pods() -> list[Json]:
    return [kubernetes()[kind]["spec"]["template"]["spec"] for kind in ("Job", "Deployment")]


# -- All of them ------------------------------------------------------------------------------------------------------


@each_row("path", RECIPES)
def test_a_recipe_names_no_variable_that_the_program_does_not_read(path: str) -> None:
    known = set(re.findall(r'\b(?:env\.\w+|text)\(\s*"([A-Z0-9_]+)"', "".join(map(read, READERS))))
    assert {*VARIABLE.findall(read(path))} - known - OTHERS == set()


def test_the_proxies_take_what_the_servers_take_and_no_more() -> None:
    mebibytes = LARGEST_BODY // 2**20
    assert f"client_max_body_size {mebibytes}m;" in read("deploy/nginx.conf")
    assert f"max_size {mebibytes}MiB" in read("deploy/Caddyfile")


def test_every_supervisor_waits_longer_for_the_end_than_tools_may_take() -> None:
    """As long as DRAIN_SECONDS, and some seconds for what comes after."""
    [unit] = re.findall(r"^TimeoutStopSec=(\d+)s$", read("deploy/hitlchat.service"), re.MULTILINE)
    [compose] = re.findall(r"^  stop_grace_period: (\d+)s$", read("compose.yaml"), re.MULTILINE)
    manifest = read("deploy/kubernetes/hitlchat.yaml")
    [grace] = re.findall(r"terminationGracePeriodSeconds: (\d+)", manifest)
    [pause] = re.findall(r'command: \[sleep, "(\d+)"\]', manifest)
    assert min(int(unit), int(compose), int(grace) - int(pause)) >= settings.DRAIN_SECONDS + 10


def test_no_recipe_switches_a_guard_off() -> None:
    weak = r"HITL_ENABLED|\bDEBUG|MCP_ALLOW_STDIO|privileged: true|seccomp[:=]unconfined|Unconfined\b"
    assert [path for path in RECIPES if not path.startswith("docs/") and re.search(weak, read(path))] == []
    required = [read(path) for path in ("compose.yaml", "deploy/hitlchat.service", "deploy/kubernetes/settings.yaml")]
    assert all(re.search(r'TOOLS_REQUIRE_JAIL(=|: ")1', each) for each in required)


# -- The image and compose.yaml ---------------------------------------------------------------------------------------


def test_the_image_has_all_that_the_server_reads_and_neither_data_nor_keys() -> None:
    first, *let_in = [line for line in read(".dockerignore").splitlines() if line and not line.startswith("#")]
    wanted = {"hitlchat", "tools_studio", "templates", "manage.py", "requirements.lock"}
    wanted |= {Path(place).name for place in (*settings.STATICFILES_DIRS, *settings.LOCALE_PATHS)}
    assert first == "*"
    assert {line.removeprefix("!") for line in let_in if line.startswith("!")} == wanted | {"LICENSE", *DOCUMENTS}


def test_the_image_runs_as_a_fixed_user_and_is_asked_for_its_health() -> None:
    image = read("Dockerfile")
    assert image.index("USER 10001:10001") < image.index("HEALTHCHECK") < image.index("ENTRYPOINT")
    assert re.findall(r"(/\w+)\\\", timeout", image) == ["/readyz"]
    assert "/readyz" in PROBES
    assert "--require-hashes -r /requirements.lock" in image


def test_compose_starts_one_server_and_with_its_profile_everything() -> None:
    always = {name for name, each in services().items() if "profiles" not in each}
    assert always == {"migrate", "server"}
    assert {*services()} - always == {"server2", "postgres", "redis", "caddy"}


def test_what_a_service_of_compose_refers_to_exists() -> None:
    whole = documents("compose.yaml")[0]
    for name, each in services().items():
        assert {*each.get("networks", [])} <= {*whole["networks"]}, name
        assert {*each.get("depends_on", {})} <= {*services()}, name
        named = {volume.partition(":")[0] for volume in each.get("volumes", [])}
        assert {place for place in named if not place.startswith(".")} <= {*whole["volumes"]}, name
        assert all((ROOT / place).exists() for place in named if place.startswith(".")), name
        # A service without a profile may only wait for one that has one where that may be absent.
        absent = {at for at in each.get("depends_on", {}) if "profiles" in services()[at]}
        assert "profiles" in each or not any(each["depends_on"][at].get("required", True) for at in absent), name


def test_only_caddy_can_be_reached_from_other_machines_and_passwords_come_from_outside() -> None:
    published = {name: each["ports"] for name, each in services().items() if each.get("ports")}
    assert all(port.startswith("127.0.0.1:") for port in published.pop("server"))
    assert {*published} == {"caddy"}
    assert documents("compose.yaml")[0]["networks"]["services"]["internal"]
    assert [*services()["postgres"]["networks"], *services()["redis"]["networks"]] == ["services", "services"]
    taken = set(re.findall(r"(?<!\$)\$\{(\w+)", read("compose.yaml")))
    assert taken == {"HITLCHAT_SITE", "SERVICES_PASSWORD", "PORT"}


def test_the_servers_of_compose_write_to_their_volume_alone() -> None:
    for name in ("migrate", "server", "server2"):
        each = services()[name]
        assert (each["read_only"], each["cap_drop"]) == (True, ["ALL"])
        assert each["volumes"] == ["data:/data"]
        # The sandbox starts programs there.
        assert [place.split(",")[0] for place in each["tmpfs"]] == ["/tmp:exec"]


# -- systemd ----------------------------------------------------------------------------------------------------------


def test_systemd_understands_every_line_of_the_unit(tmp_path: Path) -> None:
    if (program := shutil.which("systemd-analyze")) is None:
        pytest.skip("systemd-analyze is not installed")
    unit = read("deploy/hitlchat.service").replace("/opt/hitlchat/.venv/bin/python", sys.executable)
    (path := tmp_path / "hitlchat.service").write_text(unit, encoding="utf-8")
    command = [program, "verify", "--man=no", "--recursive-errors=no", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_systemd_never_gives_up_on_a_server_that_waits_for_its_database() -> None:
    """Else a server that starts while the database is away for minutes stays down until somebody comes."""
    unit = read("deploy/hitlchat.service")
    interval, burst, pause = (
        int(re.findall(rf"^{name}=(\d+)s?$", unit, re.MULTILINE)[0])
        for name in ("StartLimitIntervalSec", "StartLimitBurst", "RestartSec")
    )
    [patience] = re.findall(r'pool = .*"timeout": (\d+)}', read("hitlchat/settings.py"))
    assert burst * (int(patience) + pause) > interval


def test_commands_have_the_folders_the_mask_and_the_variables_of_the_unit() -> None:
    """Else one would see another database, or another sandbox than the server's, or miss folders before its start."""
    unit, command = read("deploy/hitlchat.service"), read("deploy/hitlchat")
    for name in (
        "EnvironmentFile",
        "UMask",
        "StateDirectory",
        "StateDirectoryMode",
        "CacheDirectory",
        "CacheDirectoryMode",
    ):
        [value] = re.findall(rf"^{name}=(.+)$", unit, re.MULTILINE)
        assert f"--property={name}={value} " in command
    for name, option in (("User", "uid"), ("Group", "gid"), ("WorkingDirectory", "working-directory")):
        [value] = re.findall(rf"^{name}=(.+)$", unit, re.MULTILINE)
        assert f"--{option}={value} " in command
    variables = {*" ".join(re.findall(r"^Environment=(.+)$", unit, re.MULTILINE)).split()}
    # Python writes nothing into the checkout, which is root's, and what a command prints is not buffered at its end.
    assert {*re.findall(r"--setenv=(\S+)", command)} == variables - {"PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1"}


# -- Kubernetes -------------------------------------------------------------------------------------------------------


def test_each_selector_finds_the_servers_and_not_the_job_that_migrates() -> None:
    found = kubernetes()
    deployment = found["Deployment"]["spec"]
    servers = deployment["template"]["metadata"]["labels"]
    job = found["Job"]["spec"]["template"]["metadata"]["labels"]
    budget = found["PodDisruptionBudget"]["spec"]
    for chosen in (
        deployment["selector"]["matchLabels"],
        found["Service"]["spec"]["selector"],
        budget["selector"]["matchLabels"],
    ):
        assert chosen.items() <= servers.items()
        assert not chosen.items() <= job.items()
    assert budget["minAvailable"] < deployment["replicas"]


def test_probes_and_the_service_go_to_ports_and_addresses_that_there_are() -> None:
    [container] = kubernetes()["Deployment"]["spec"]["template"]["spec"]["containers"]
    ports = {port["name"] for port in container["ports"]}
    assert f"EXPOSE {container['ports'][0]['containerPort']}" in read("Dockerfile")
    assert {port["targetPort"] for port in kubernetes()["Service"]["spec"]["ports"]} <= ports
    probes = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        # A database that is away must not have servers killed that work on calls.
        "startup": "/healthz",
        "liveness": "/healthz",
        "readiness": "/readyz",
    }
    assert {probe["port"] for probe in probes.values()} <= ports


def test_the_pods_take_their_settings_and_their_folder_from_objects_that_there_are() -> None:
    for pod in pods():
        [container] = pod["containers"]
        named = [(kind, each["name"]) for source in container["envFrom"] for kind, each in source.items()]
        kinds = {"configMapRef": "ConfigMap", "secretRef": "Secret"}
        assert [kubernetes()[kinds[kind]]["metadata"]["name"] for kind, _ in named] == [name for _, name in named]
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} == {*volumes}
        claim = volumes["data"]["persistentVolumeClaim"]["claimName"]
        assert kubernetes()["PersistentVolumeClaim"]["metadata"]["name"] == claim


def test_the_pods_run_as_the_user_of_the_image_behind_a_read_only_root() -> None:
    images = set()
    for pod in pods():
        [container] = pod["containers"]
        images.add(container["image"])
        assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsNonRoot"]) == (10001, True)
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert not container["securityContext"]["allowPrivilegeEscalation"]
        assert not pod["enableServiceLinks"]
    assert len(images) == 1
