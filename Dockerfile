# A node: any role, chosen by its configuration. Holds no torch, no compiler and no package cache.
#
#   docker build -t identic .
#   docker run -v node:/var/lib/identic -v ./solver.toml:/etc/identic/node.toml:ro identic
#
# deploy/compose.yaml runs a whole network of it; there deploy/start draws identities and shares
# contact cards first.
#
# BASE is a Debian with or without Python 3.11 or later. EXTRAS adds optional parts, for example
# EXTRAS=[postgres,s3]. A build secret named `pip` may give pip's configuration (a mirror).
#
# CUDA: EXTRAS=[cuda] for a driver of CUDA 12, CUPY="cupy-cuda13x nvidia-cuda-nvrtc" for one of
# CUDA 13; `docker run --gpus all` then brings the driver in. BASE may be an image of NVIDIA's, and
# need not be: the packages have what compiles the kernels.

ARG BASE=python:3.11-slim-bookworm

# ---- build: compile the native kernels into a virtual environment ---------------------------

FROM ${BASE} AS build
ARG EXTRAS=""
ARG CUPY=""
ENV DEBIAN_FRONTEND=noninteractive
RUN apt-get update \
 && apt-get install -y --no-install-recommends g++ ca-certificates \
 && { python3 -c 'import ensurepip, venv' 2>/dev/null \
      || apt-get install -y --no-install-recommends python3-dev python3-venv; }
RUN python3 -m venv /opt/identic
WORKDIR /src
COPY pyproject.toml requirements.lock CMakeLists.txt README.md LICENSE ./
COPY protocol protocol
COPY proofs proofs
COPY kernels kernels
COPY proto proto
COPY node node
COPY src src
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    /opt/identic/bin/pip install --no-cache-dir --constraint requirements.lock ".${EXTRAS}" ${CUPY}

# ---- run ------------------------------------------------------------------------------------

FROM ${BASE}
ENV DEBIAN_FRONTEND=noninteractive
RUN command -v python3 >/dev/null \
 || { apt-get update && apt-get install -y --no-install-recommends python3 \
      && rm -rf /var/lib/apt/lists/*; }
RUN useradd --system --uid 10001 --home-dir /var/lib/identic --create-home identic \
 && install -d -o identic -g identic -m 0700 /var/lib/identic \
 && install -d -o identic -g identic /var/lib/identic-cards \
 && install -d /etc/identic
COPY --from=build /opt/identic /opt/identic
COPY --chmod=0755 deploy/start /usr/local/bin/identic-start
# Where devices are lent to the container: what is needed of the driver, and a place for what was compiled.
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility CUPY_CACHE_DIR=/var/lib/identic/.cupy
ENV PATH=/opt/identic/bin:$PATH PYTHONUNBUFFERED=1
USER identic
WORKDIR /var/lib/identic
VOLUME /var/lib/identic
STOPSIGNAL SIGTERM
ENTRYPOINT ["identic"]
CMD ["node", "run", "--config", "/etc/identic/node.toml"]
