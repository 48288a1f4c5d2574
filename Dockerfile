# The app for a class, on the CPU:
#   docker build -t headlight .
#   docker run --read-only --tmpfs /tmp -p 8501:8501 headlight
# For this machine alone: -p 127.0.0.1:8501:8501
FROM python:3.12-slim

# By default pip would fetch several gigabytes of CUDA with PyTorch.
RUN pip install --no-cache-dir "torch>=2.6,<2.14" --index-url https://download.pytorch.org/whl/cpu
WORKDIR /headlight
COPY requirements.txt .
RUN pip install --no-cache-dir -r requirements.txt
COPY headlight headlight
COPY app app
COPY model model
COPY assets assets

RUN useradd --system headlight
USER headlight
ENV HOME=/tmp MPLCONFIGDIR=/tmp PYTHONDONTWRITEBYTECODE=1
EXPOSE 8501
HEALTHCHECK --start-period=60s CMD python -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8501/_stcore/health')"
CMD ["python", "-m", "headlight", "--serve", "--port", "8501"]
