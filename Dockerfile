# The server in one image. docs/deploying.md says how to run it.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS packages
COPY requirements.lock /
RUN python -m venv --without-pip /venv \
 && python -m pip --python /venv install --no-cache-dir --disable-pip-version-check \
      --require-hashes -r /requirements.lock

FROM ${PYTHON_IMAGE}
# Workers of the sandbox that are killed leave children behind: something has to be process 1 and reap them.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends tini \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 10001 hitlchat \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin hitlchat \
 && install --directory --owner=10001 --group=10001 --mode=700 /data
WORKDIR /app
COPY --from=packages /venv /venv
COPY . .
# Compiled here, since nothing can be written at run time.
RUN python -m compileall -q /app
ENV PATH=/venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 HITLCHAT_DATA=/data HOST=0.0.0.0
USER 10001:10001
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=90s --retries=4 \
  CMD ["python", "-IS", "-c", "import os, urllib.request as web; web.urlopen(f\"http://127.0.0.1:{os.environ.get('PORT') or 8000}/readyz\", timeout=4)"]
ENTRYPOINT ["tini", "--", "python", "manage.py"]
CMD ["serve"]
