"""All settings, from the environment. README has the table of variables."""

from pathlib import Path
from typing import Any

import dj_database_url

from hitlchat import environment as env

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = env.data_dir(BASE_DIR / "var")

DEBUG = env.flag("DEBUG", default=False)
SECRET_KEY = env.secret_key(DATA_DIR)
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", ["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS", [])
HTTPS = env.flag("HTTPS", default=False)

ROOT_URLCONF = "hitlchat.urls"
ASGI_APPLICATION = "hitlchat.asgi.application"
INSTALLED_APPS = [
    "daphne",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "django_htmx",
    "django_ace",
    "ninja",
    "hitlchat",
    "hitlchat.accounts",
    "hitlchat.gate",
    "hitlchat.agent",
    "hitlchat.chat",
    "hitlchat.approvals",
    "hitlchat.api",
    "tools_studio",
]
MIDDLEWARE = [
    "hitlchat.headers.content_security_policy",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
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
            "builtins": ["hitlchat.templatetags.marks"],
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
        "PRAGMA page_size=1024; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA journal_size_limit=27103364"
    ),
}
DATABASES: dict[str, dict[str, Any]]
if DATABASE_URL:
    DATABASES = {"default": dict(dj_database_url.parse(DATABASE_URL))}
else:
    DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": DATA_DIR / "hitlchat.sqlite3"}}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"] |= {
        "CONN_MAX_AGE": None,
        "OPTIONS": SQLITE_OPTIONS,
        # A file, since the server's threads each open a connection of their own.
        "TEST": {"NAME": str(DATA_DIR / "test.sqlite3")},
    }
else:
    pool = {"min_size": 2, "max_size": env.integer("DATABASE_POOL_SIZE", 20), "timeout": 10}
    DATABASES["default"] |= {"CONN_MAX_AGE": 0, "OPTIONS": {"pool": pool}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.text("REDIS_URL")
# Events beyond the capacity are dropped without a word; pages make up for it only when they connect again.
IN_MEMORY = {"BACKEND": "channels.layers.InMemoryChannelLayer", "CONFIG": {"capacity": 1000}}
CHANNEL_LAYERS: dict[str, Any] = {"default": IN_MEMORY}
if REDIS_URL:
    CHANNEL_LAYERS["default"] = {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        # redis-py's default read time-out of 5 s would end every idle websocket.
        "CONFIG": {"hosts": [{"address": REDIS_URL, "socket_timeout": None}]},
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
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_HSTS_SECONDS = 31536000 if HTTPS else 0
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 2**20

LANGUAGE_CODE = "en"
TIME_ZONE = env.text("TIME_ZONE", "UTC")
USE_TZ = True
USE_I18N = False

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_MAX_AGE = 60 if not DEBUG else 0

# -- The gate ---------------------------------------------------------------------------------------------------------
HITL_ENABLED = env.flag("HITL_ENABLED", default=True)
HITL_TIMEOUT_SECONDS = env.integer("HITL_TIMEOUT_SECONDS", 300, most=30 * 86400)
TOOLS_REQUIRE_JAIL = env.flag("TOOLS_REQUIRE_JAIL", default=False)
# A source offers execute(call); the gate reaches it by this path only.
TOOL_SOURCES = {"studio": "tools_studio.source.StudioSource"}
# How long a process may be silent before its work counts as abandoned. The heartbeat is a third of it.
LEASE_SECONDS = env.integer("LEASE_SECONDS", 15, least=3, most=600)

# -- The model --------------------------------------------------------------------------------------------------------
OPENAI_BASE_URL = env.text("OPENAI_BASE_URL")
OPENAI_API_KEY = env.text("OPENAI_API_KEY")
OPENAI_MODEL = env.text("OPENAI_MODEL")
MODEL_TIMEOUT_SECONDS = env.integer("MODEL_TIMEOUT_SECONDS", 120, most=3600)

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name} {message}", "style": "{"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": env.text("LOG_LEVEL", "INFO").upper()},
    "loggers": {"httpx2": {"level": "WARNING"}, "httpcore2": {"level": "WARNING"}, "daphne": {"level": "WARNING"}},
}
