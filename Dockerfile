# The gateway as an image: docker build -t taoloop . ; how it is run: docs/gateway-operation.md, "In a container".
# Everything comes from locks/image.txt by its hash, and taoloop itself as the wheel that is built here.
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/taoloop
WORKDIR /src
COPY locks/image.txt locks/image.txt
RUN /opt/taoloop/bin/pip install --no-deps --require-hashes -r locks/image.txt
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY src src
RUN /opt/taoloop/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheel . \
    && /opt/taoloop/bin/pip install --no-deps --no-index /wheel/*.whl \
    && /opt/taoloop/bin/pip uninstall --yes hatchling editables pip

FROM python:${PYTHON}-slim
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin taoloop \
    && install -d -o taoloop -g taoloop -m 700 /var/lib/taoloop
COPY --from=build /opt/taoloop /opt/taoloop
ENV PATH=/opt/taoloop/bin:$PATH PYTHONUNBUFFERED=1
USER 10001
WORKDIR /var/lib/taoloop
VOLUME /var/lib/taoloop
EXPOSE 8080
# With `tls` or another port, replace it by a check of your own: this one speaks HTTP to port 8080.
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/readyz', timeout=4)"]
ENTRYPOINT ["tao", "serve"]
CMD ["/etc/taoloop/gateway.yaml", "--host", "0.0.0.0", "--port", "8080", "--db", "/var/lib/taoloop/runs.db", "--log-format", "json"]
