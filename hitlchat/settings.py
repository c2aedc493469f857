"""All settings, from the environment and the file of settings. README has the table of variables."""

import math
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from hitlchat.base import configuration
from hitlchat.base import environment as env

BASE_DIR = Path(__file__).resolve().parent.parent
# Before any other setting is read: it puts what the file has into the environment.
CONFIGURATION = configuration.load(BASE_DIR / "var")
DATA_DIR = env.data_dir(BASE_DIR / "var")

DEBUG = env.flag("DEBUG", default=False)
SECRET_KEY = env.secret_key(DATA_DIR)
# Former keys, so that what was sealed with them can still be read.
SECRET_KEY_FALLBACKS = env.words("SECRET_KEY_FALLBACKS", [])
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", ["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS", [])
HTTPS = env.flag("HTTPS", default=False)
# Where the server listens, unless its command line says otherwise.
HOST = env.text("HOST", "127.0.0.1")
PORT = env.integer("PORT", 8000, most=65535)

ROOT_URLCONF = "hitlchat.urls"
ASGI_APPLICATION = "hitlchat.asgi.application"
OWN_APPS = [
    "daphne",
    # Before Django's own, whose `createsuperuser` it puts on record.
    "hitlchat",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "django_htmx",
    "axes",
    "django_ace",
    "ninja",
    "hitlchat.accounts",
    "hitlchat.gate",
    "hitlchat.record",
    "hitlchat.agent",
    "hitlchat.chat",
    "hitlchat.approvals",
    "hitlchat.api",
    "tools_studio",
    "hitlchat.project_tools",
    "hitlchat.upstreams",
    "hitlchat.mcp_server",
    "hitlchat.people",
    "hitlchat.notices",
    "hitlchat.telemetry",
]
# Those of the operator: functions of their `tools.py` with @tool can be called.
INSTALLED_APPS = [*OWN_APPS, *env.apps("PROJECT_APPS")]
MIDDLEWARE = [
    # First, since those after it refuse what comes by another name than ALLOWED_HOSTS has.
    "hitlchat.health.answer_probes",
    "hitlchat.headers.response_headers",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "hitlchat.headers.CompressedPages",
    "django.contrib.sessions.middleware.SessionMiddleware",
    # In place of Django's own, which knows no language of the installation and leaves that of an answer active.
    "hitlchat.accounts.preferences.page_language",
    "hitlchat.headers.Slashes",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "hitlchat.accounts.access.leave_page",
    "axes.middleware.AxesMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": False,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "hitlchat.context.shell",
            ],
            "builtins": ["django.templatetags.i18n", "hitlchat.templatetags.marks"],
            "libraries": {"django_htmx": "django_htmx.templatetags.django_htmx"},
        },
    }
]

# -- Databases: the same code on both; only this differs --------------------------------------------------------------
DATABASE_URL = env.text("DATABASE_URL")
SQLITE_OPTIONS: dict[str, Any] = {
    # IMMEDIATE: a transaction that reads and then writes would otherwise fail at once when another one writes.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    # Small pages: most of what is written are small rows, and a changed page is written whole. Counts for new files.
    "init_command": (
        "PRAGMA page_size=1024; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; "
        "PRAGMA journal_size_limit=27103364; "
        # Only macOS knows it, where a disk may otherwise say that it has written what it still holds.
        "PRAGMA fullfsync=ON"
    ),
}
DATABASE_POOL_SIZE = env.integer("DATABASE_POOL_SIZE", 20)
DATABASES: dict[str, dict[str, Any]]
if DATABASE_URL:
    DATABASES = {"default": dict(dj_database_url.parse(DATABASE_URL))}
else:
    DATABASES = {
        "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": env.private_file(DATA_DIR / "hitlchat.sqlite3")}
    }
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"] |= {
        "CONN_MAX_AGE": None,
        "OPTIONS": SQLITE_OPTIONS,
        # A file, since the server's threads each open a connection of their own.
        "TEST": {"NAME": str(DATA_DIR / "test.sqlite3")},
    }
else:
    pool = {"min_size": 2, "max_size": DATABASE_POOL_SIZE, "timeout": 10}
    DATABASES["default"] |= {"CONN_MAX_AGE": 0, "OPTIONS": {"pool": pool}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.text("REDIS_URL")
# Events beyond the capacity are dropped without a word; pages make up for it only when they connect again.
IN_MEMORY = {"BACKEND": "hitlchat.base.channel_layer.OneProcess", "CONFIG": {"capacity": 1000}}
CHANNEL_LAYERS: dict[str, Any] = {"default": IN_MEMORY}
if REDIS_URL:
    CHANNEL_LAYERS["default"] = {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        # redis-py's default read time-out of 5 s would end every idle websocket. Redis publishes across its numbered
        # databases: without a prefix, installations that share a server would hear each other.
        "CONFIG": {"hosts": [{"address": REDIS_URL, "socket_timeout": None}], "prefix": env.channel_prefix(REDIS_URL)},
    }

# -- People and browsers ----------------------------------------------------------------------------------------------
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "chat"
LOGOUT_REDIRECT_URL = "sign-in"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
# By name and address: whose name it is can go on signing in from elsewhere, unless all come through one address.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = env.integer("SIGN_IN_ATTEMPTS", 10, least=3, most=1000)
AXES_COOLOFF_TIME = timedelta(minutes=env.integer("SIGN_IN_PAUSE_MINUTES", 15, most=1440))
# So many proxies stand before the server, each of which adds to X-Forwarded-For whom it was asked by.
TRUSTED_PROXIES = env.integer("TRUSTED_PROXIES", 0, least=0, most=10)
AXES_CLIENT_IP_CALLABLE = "hitlchat.accounts.sign_in.address"
AXES_LOCKOUT_CALLABLE = "hitlchat.accounts.sign_in.page"
AXES_RESET_ON_SUCCESS = True
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_HSTS_SECONDS = 31536000 if HTTPS else 0
SECURE_REFERRER_POLICY = "same-origin"
# Of `check --deploy`: other names of the operator's domain, and a list in browsers, are not for hitlchat to speak for;
# and the proxy, which has the certificate, redirects to HTTPS.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W008", "security.W021"]
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 2**20
# As many as fit that: the form of a server has a few for each of its tools that is changed.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 20_000

# What is stored, and what programs and models read, is in this language always.
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LOCALE_PATHS = [BASE_DIR / "locale"]
LANGUAGE_COOKIE_NAME = "hitlchat_language"
# Of pages, for whoever has not chosen another one; empty: as the browser asks. Not LANGUAGE, which desktops set.
HITL_LANGUAGE = env.text("HITL_LANGUAGE")
if HITL_LANGUAGE and HITL_LANGUAGE not in dict(LANGUAGES):
    raise ImproperlyConfigured(
        f"HITL_LANGUAGE is {HITL_LANGUAGE!r}; expected en, de, or nothing (then browsers decide)"
    )
TIME_ZONE = env.text("TIME_ZONE", "UTC")
USE_TZ = True
USE_I18N = True

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_MIMETYPES = {".webmanifest": "application/manifest+json"}
WHITENOISE_MAX_AGE = 60 if not DEBUG else 0

# -- The gate ---------------------------------------------------------------------------------------------------------
HITL_ENABLED = env.flag("HITL_ENABLED", default=True)
# The rules of this installation, as JSON: docs/policies.md.
HITL_POLICIES = env.entries("HITL_POLICIES")
HITL_POLICY_SECONDS = env.integer("HITL_POLICY_SECONDS", 5, least=1, most=60)
# Questions that may be open at once: beyond, a run pauses until some are answered, and other calls are refused.
HITL_MAX_WAITING_PER_CONVERSATION = env.integer("HITL_MAX_WAITING_PER_CONVERSATION", 20, most=1000)
HITL_MAX_WAITING_PER_CALLER = env.integer("HITL_MAX_WAITING_PER_CALLER", 200, most=100_000)
HITL_TIMEOUT_SECONDS = env.integer("HITL_TIMEOUT_SECONDS", 300, most=30 * 86400)
# A call of the highest risk is approved only by someone who gave their password within so many minutes.
HITL_FRESH_SIGN_IN_MINUTES = env.integer("HITL_FRESH_SIGN_IN_MINUTES", 15, most=1440)
# What share of the calls that ran without asking comes to their person to look back at; 0: none.
HITL_LOOK_BACK_PERCENT = env.integer("HITL_LOOK_BACK_PERCENT", 5, least=0, most=100)
# After so many yeses in a row, each faster than the card can be read, the next card asks for a value; 0: none does.
HITL_QUICK_YESES = env.integer("HITL_QUICK_YESES", 3, least=0, most=10)
TOOLS_REQUIRE_JAIL = env.flag("TOOLS_REQUIRE_JAIL", default=False)
# What one run of a tool may use (hitlchat/sandbox/limits.py), and how many run at the same time in this process.
TOOL_CPU_SECONDS = env.number("TOOL_CPU_SECONDS", 2, least=0.1, most=60)
TOOL_WALL_SECONDS = env.number("TOOL_WALL_SECONDS", 30, least=1, most=600)
TOOL_MEMORY_MIB = env.integer("TOOL_MEMORY_MIB", 64, least=8, most=256)
TOOL_HOST_CALLS = env.integer("TOOL_HOST_CALLS", 200, most=10_000)
TOOL_HELPER_CALLS = env.integer("TOOL_HELPER_CALLS", 5000, most=100_000)
TOOL_SLEEP_SECONDS = env.number("TOOL_SLEEP_SECONDS", 10, least=0, most=600)
TOOL_SOURCE_KIB = env.integer("TOOL_SOURCE_KIB", 64, most=256)
# At most half of what a form, a request of the API and a message at /mcp may have.
TOOL_ARGUMENT_KIB = env.integer("TOOL_ARGUMENT_KIB", 256, most=1024)
TOOL_RESULT_KIB = env.integer("TOOL_RESULT_KIB", 256, most=4096)
TOOL_OUTPUT_KIB = env.integer("TOOL_OUTPUT_KIB", 64, most=1024)
TOOL_WORKERS = env.integer("TOOL_WORKERS", max(4, os.cpu_count() or 1), most=64)
# How long an approved or allowed call waits for a free worker; then it is withdrawn.
TOOL_QUEUE_SECONDS = env.integer("TOOL_QUEUE_SECONDS", 900, least=5, most=86400)
# Patterns of environment variables that tools may refer to, such as SHOP_*; empty: all but hitlchat's own.
TOOLS_ENV = env.words("TOOLS_ENV", [])
# Below it, one folder for each name that a tool's capability `files` has.
TOOL_FILES_DIR = DATA_DIR / "files"
# A source offers execute(call); the gate reaches it by this path only.
TOOL_SOURCES = {
    "studio": "tools_studio.source.StudioSource",
    "project": "hitlchat.project_tools.source.ProjectSource",
    "upstream": "hitlchat.upstreams.source.UpstreamSource",
    "person": "hitlchat.agent.asking.PersonSource",
    "search": "hitlchat.agent.offering.CatalogSource",
    "agent": "hitlchat.agent.agents.AgentSource",
}
# What the record states of all that makes the gate ask less, and of attention checks: ids in, or None for all, facts by
# id out.
RECORD_STATES = {
    "tool": "hitlchat.gate.stated.tools",
    "rules": "hitlchat.gate.stated.rules",
    "texts": "hitlchat.gate.stated.texts",
    "former tool": "hitlchat.gate.stated.former_tools",
    "conversation": "hitlchat.gate.stated.conversations",
    "person": "hitlchat.gate.stated.people",
    "delegation": "hitlchat.gate.stated.absences",
    "attention check": "hitlchat.gate.stated.checks",
    "token": "hitlchat.gate.stated.tokens",
    "server": "hitlchat.upstreams.servers.server_states",
    "exposure": "hitlchat.upstreams.servers.exposure_states",
    "tool event": "hitlchat.upstreams.servers.tool_event_states",
}
# What the calls of a conversation may be of, as the gate asks it: an id in, a hitlchat.gate.tools.Reach out.
CONVERSATION_REACH = "hitlchat.agent.tool_sets.reach_of"
# The key that the record is sealed with, as docs/record.md says; how often it is sealed; how many days it is kept.
HITL_RECORD_KEY = env.text("HITL_RECORD_KEY")
HITL_RECORD_SECONDS = env.integer("HITL_RECORD_SECONDS", 10, most=3600)
HITL_RECORD_DAYS = env.integer("HITL_RECORD_DAYS", 0, least=0, most=36500)
# How long a process may be silent before its work counts as abandoned. The heartbeat is a third of it.
LEASE_SECONDS = env.integer("LEASE_SECONDS", 15, least=3, most=600)
# How long the server, told to end, waits for tools that execute: as long as one of ours may take, unless set otherwise.
DRAIN_SECONDS = env.integer("DRAIN_SECONDS", math.ceil(TOOL_WALL_SECONDS), most=3600)
# How long a client may take nothing of an answer that is being sent to it, before its connection is given up.
STALL_SECONDS = env.integer("STALL_SECONDS", 60, most=3600)
# After so many seconds without news a stream of events says that it goes on, so that proxies keep it.
STREAM_KEEP_ALIVE_SECONDS = env.number("STREAM_KEEP_ALIVE_SECONDS", 15, least=0.05, most=300)
# How many of them one person may have open at each process.
STREAMS_PER_PERSON = env.integer("STREAMS_PER_PERSON", 50, least=1, most=10_000)

# -- Upstream MCP servers ---------------------------------------------------------------------------------------------
# Whether an administrator may have programs started on this machine, which then may do what this server may.
MCP_ALLOW_STDIO = env.flag("MCP_ALLOW_STDIO", default=False)
# Whether servers may be on this machine or on a private network, where an administrator says so.
MCP_ALLOW_PRIVATE = env.flag("MCP_ALLOW_PRIVATE", default=True)
# A list of tools that is older is read again before a call is forwarded: servers may change without saying so.
MCP_LIST_SECONDS = env.integer("MCP_LIST_SECONDS", 10, least=0, most=3600)
# So long a server may take to be connected, and as long again to list its tools.
MCP_CONNECT_SECONDS = env.integer("MCP_CONNECT_SECONDS", 30, least=1, most=300)

# -- The MCP server at /mcp -------------------------------------------------------------------------------------------
# Up to this risk level an MCP client may say what its user said; of riskier calls a signed-in person decides.
HITL_ELICITATION_MAX_RISK = env.integer("HITL_ELICITATION_MAX_RISK", 1, least=0, most=5)
# How long a client of an older revision may hold a question open, which holds its request open too.
MCP_ELICITATION_SECONDS = env.integer("MCP_ELICITATION_SECONDS", 600, most=3600)
# How long a call that waits for the inbox keeps its client waiting, before it is told to come back.
MCP_INBOX_SECONDS = env.integer("MCP_INBOX_SECONDS", 50, most=3600)
# How many sessions and streams one token, and one person with all their tokens, may have open at /mcp.
MCP_TOKEN_SESSIONS = env.integer("MCP_TOKEN_SESSIONS", 20, least=1, most=500)
MCP_PERSON_SESSIONS = env.integer("MCP_PERSON_SESSIONS", 60, least=1, most=500)
# How long a server's question waits for the person whose call it is; the time of the call does not go on meanwhile.
MCP_QUESTION_SECONDS = env.integer("MCP_QUESTION_SECONDS", 300, most=86400)

# -- Notices: docs/notices.md ------------------------------------------------------------------------------------------
# Where people reach this server, for links; without it notices have none, save where only this machine is answered.
HITL_PUBLIC_URL = env.address("HITL_PUBLIC_URL")
# What comes within so many seconds is one notice, and to one receiver there is at most one in so many.
NOTICE_COLLECT_SECONDS = env.integer("NOTICE_COLLECT_SECONDS", 5, least=0, most=600)
NOTICE_INTERVAL_SECONDS = env.integer("NOTICE_INTERVAL_SECONDS", 60, least=0, most=3600)
# How long sending to a webhook may take in all, from looking up its name to the last of its answer.
NOTICE_TIMEOUT_SECONDS = env.integer("NOTICE_TIMEOUT_SECONDS", 10, least=1, most=60)
# Whether webhooks may go to this machine or a private network, where an administrator says so.
NOTICE_ALLOW_PRIVATE = env.flag("NOTICE_ALLOW_PRIVATE", default=True)

# -- E-mail, of tools and of notices: without EMAIL_HOST there is none --------------------------------------------
EMAIL_HOST = env.text("EMAIL_HOST")
EMAIL_USE_TLS = env.flag("EMAIL_USE_TLS", default=False)
EMAIL_USE_SSL = env.flag("EMAIL_USE_SSL", default=False)
if EMAIL_USE_TLS and EMAIL_USE_SSL:
    raise ImproperlyConfigured("EMAIL_USE_TLS and EMAIL_USE_SSL cannot both be 1: a port uses one or the other")
EMAIL_PORT = env.integer("EMAIL_PORT", 587 if EMAIL_USE_TLS else 465 if EMAIL_USE_SSL else 25, most=65535)
EMAIL_HOST_USER = env.text("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = env.text("EMAIL_HOST_PASSWORD")
EMAIL_TIMEOUT = env.integer("EMAIL_TIMEOUT", 10, most=60)
EMAIL_FROM = env.text("EMAIL_FROM")
DEFAULT_FROM_EMAIL = env.text("DEFAULT_FROM_EMAIL") or EMAIL_FROM or f"hitlchat@{EMAIL_HOST or 'localhost'}"

# -- The model --------------------------------------------------------------------------------------------------------
OPENAI_BASE_URL = env.text("OPENAI_BASE_URL")
OPENAI_API_KEY = env.text("OPENAI_API_KEY")
OPENAI_MODEL = env.text("OPENAI_MODEL")
OPENAI_API = env.text("OPENAI_API", "chat")
if OPENAI_API not in ("chat", "responses"):
    raise ImproperlyConfigured(f"OPENAI_API is {OPENAI_API!r}; expected chat or responses")
# How many tokens the context of the environment's model has; 0: not known.
OPENAI_CONTEXT_LENGTH = env.integer("OPENAI_CONTEXT_LENGTH", 0, least=0, most=100_000_000)
# What a million tokens of it cost, in MODEL_CURRENCY; None: not known.
OPENAI_INPUT_PRICE = env.number("OPENAI_INPUT_PRICE", None, least=0, most=999_999)
OPENAI_OUTPUT_PRICE = env.number("OPENAI_OUTPUT_PRICE", None, least=0, most=999_999)
if (OPENAI_INPUT_PRICE is None) != (OPENAI_OUTPUT_PRICE is None):
    raise ImproperlyConfigured("OPENAI_INPUT_PRICE and OPENAI_OUTPUT_PRICE go together: set both or neither")
# Whether the model is asked, after its first answer in a conversation, for the title of that.
CHAT_TITLES = env.flag("CHAT_TITLES", default=True)
# Whether the model is offered a tool to ask the person of the conversation a question with a small form.
HITL_ASK_USER = env.flag("HITL_ASK_USER", default=True)
MODEL_TIMEOUT_SECONDS = env.integer("MODEL_TIMEOUT_SECONDS", 120, most=3600)
# Whether model endpoints of administrators may be on this machine or on a private network.
MODEL_ALLOW_PRIVATE = env.flag("MODEL_ALLOW_PRIVATE", default=True)
# How many tokens one person's conversations may take on one day; 0: as many as they like.
MODEL_PERSON_TOKENS = env.integer("MODEL_PERSON_TOKENS", 0, least=0, most=10**12)
# How many tokens one conversation may take, with its agents; 0: as many as it likes.
MODEL_CONVERSATION_TOKENS = env.integer("MODEL_CONVERSATION_TOKENS", 0, least=0, most=10**12)
# What one person's conversations may cost on one day, and one conversation with its agents, where endpoints have
# prices; 0: as much as they like.
MODEL_PERSON_COST = env.number("MODEL_PERSON_COST", 0, least=0, most=999_999)
MODEL_CONVERSATION_COST = env.number("MODEL_CONVERSATION_COST", 0, least=0, most=999_999)
# What the prices of endpoints are in.
MODEL_CURRENCY = env.text("MODEL_CURRENCY", "USD")
MODEL_TOOLS = env.integer("MODEL_TOOLS", 40, least=2, most=10_000)
# What the model reads first in conversations that have no instructions of their own.
MODEL_INSTRUCTIONS = env.text("MODEL_INSTRUCTIONS")
# What conversations that choose nothing else send as the temperature; None: nothing.
MODEL_TEMPERATURE: float | None = env.number("MODEL_TEMPERATURE", None, least=0, most=2)
# How many tokens one answer may have, where a conversation says nothing else; 0: as the model server has it.
MODEL_MAX_TOKENS = env.integer("MODEL_MAX_TOKENS", 0, least=0, most=1_000_000)
# After how many turns a run is stopped, where a conversation says nothing else.
MODEL_TURNS = env.integer("MODEL_TURNS", 18, most=100)
# How deep agents may call agents, and how many of them one run may begin.
AGENT_DEPTH = env.integer("AGENT_DEPTH", 3, least=1, most=10)
AGENT_FAN_OUT = env.integer("AGENT_FAN_OUT", 10, least=1, most=100)
MODEL_ANSWER_SECONDS = env.integer("MODEL_ANSWER_SECONDS", 600, least=1, most=86400)
# How many images one request carries, the latest, and their size in all; 0: the model takes none.
MODEL_IMAGES = env.integer("MODEL_IMAGES", 20, least=0, most=100)
MODEL_IMAGE_MIB = env.integer("MODEL_IMAGE_MIB", 10, most=64)

# -- Attachments: what people send with their messages -----------------------------------------------------------------
# One file, and how many with a message, and these together. A request of 20 MiB is refused while it arrives.
ATTACHMENT_MIB = env.integer("ATTACHMENT_MIB", 10, most=16)
ATTACHMENT_FILES = env.integer("ATTACHMENT_FILES", 10, most=50)
ATTACHMENT_PERSON_MIB = env.integer("ATTACHMENT_PERSON_MIB", 2048, most=1_000_000)
ATTACHMENT_MESSAGE_MIB = env.integer("ATTACHMENT_MESSAGE_MIB", 30, most=800)
# How much text the model is sent of one file, and of all that belong to a message.
ATTACHMENT_CHARACTERS = env.integer("ATTACHMENT_CHARACTERS", 100_000, least=1000, most=1_000_000)
ATTACHMENT_MESSAGE_CHARACTERS = env.integer("ATTACHMENT_MESSAGE_CHARACTERS", 200_000, least=1000, most=2_000_000)
ATTACHMENTS_DIR = DATA_DIR / "attachments"

# -- For operators ----------------------------------------------------------------------------------------------------
# Reads /metrics, and nothing else, without being an administrator.
HITL_METRICS_TOKEN = env.text("HITL_METRICS_TOKEN")
# Where traces go, by OTLP over HTTP; without it there are none. The library reads the last of them itself.
OTEL_EXPORTER_OTLP_ENDPOINT = env.text("OTEL_EXPORTER_OTLP_ENDPOINT")
OTEL_SERVICE_NAME = env.text("OTEL_SERVICE_NAME", "hitlchat")
OTEL_EXPORTER_OTLP_HEADERS = env.text("OTEL_EXPORTER_OTLP_HEADERS")

LOG_LEVEL = env.text("LOG_LEVEL", "INFO").upper()
LOG_FORMAT = env.text("LOG_FORMAT", "line")
if LOG_FORMAT not in ("line", "json"):
    raise ImproperlyConfigured(f"LOG_FORMAT is {LOG_FORMAT!r}; expected line or json")
# Libraries that log at DEBUG what they send and receive, which is what calls are about: their DEBUG is never on.
TALKATIVE = ("asyncio", "channels", "django.db", "django.template", "mcp", "openai", "opentelemetry", "urllib3")
QUIET = ("axes", "httpx2", "httpcore2", "daphne")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "{asctime} {levelname} {name} {message}", "style": "{"},
        # One object a line: `at`, `level`, `logger`, `message`, and what an event has besides.
        "json": {
            "()": "pythonjsonlogger.json.JsonFormatter",
            "fmt": "{asctime}{levelname}{name}{message}",
            "style": "{",
            "rename_fields": {"asctime": "at", "levelname": "level", "name": "logger", "exc_info": "exception"},
            ".": {"default_time_format": "%Y-%m-%dT%H:%M:%S", "default_msec_format": "%s.%03d"},
        },
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {name: {"level": "WARNING"} for name in QUIET}
    | {name: {"level": "INFO" if LOG_LEVEL == "DEBUG" else LOG_LEVEL} for name in TALKATIVE},
}

# All are read by now: a line of the file that names another one has a slip in it.
CONFIGURATION.refuse_unknown()
