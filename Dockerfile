# The app for a class, on the CPU. Several processes, with limits: compose.yaml.
#   docker build -t headlight .
#   docker run --read-only --tmpfs /tmp -p 8501:8501 headlight
# For this machine alone: -p 127.0.0.1:8501:8501
FROM python:3.12-slim

# Leads visitors to one of several processes.
RUN apt-get update && apt-get install -y --no-install-recommends nginx && rm -rf /var/lib/apt/lists/*

# By default pip would fetch several gigabytes of CUDA with PyTorch. Its own index has the wheels
# without; their hashes are not those of the package index, so the version alone is pinned.
RUN pip install --no-cache-dir torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu
WORKDIR /headlight
# All else by version and hash: `make lock`.
COPY requirements.lock .
RUN pip install --no-cache-dir --require-hashes -r requirements.lock
COPY headlight headlight
COPY app app
COPY model model
COPY assets assets
COPY docs/commands.md docs/commands.md

RUN useradd --system headlight
USER headlight
ENV HOME=/tmp MPLCONFIGDIR=/tmp PYTHONDONTWRITEBYTECODE=1
EXPOSE 8501
HEALTHCHECK --start-period=60s CMD python -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8501/_stcore/health')"
CMD ["python", "-m", "headlight", "--serve", "--port", "8501"]
