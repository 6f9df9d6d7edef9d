# The course in a container, for a hub, a room or a machine without Python:
#
#     docker build -t batching .
#     docker run --rm -p 8888:8888 -v batching:/home/learner batching
#
# Open the address with the token that it prints. Copies of the labs and progress are in the volume. The image that a
# JupyterHub starts for each learner (docs/class/README.md) is another target: docker build --target hub -t batching-hub .
FROM python:3.12-slim-bookworm AS course

# A C++ compiler, so that "Measure" can compile the kernels for the CPU; without it they run as NumPy.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/batching
# Packages first: they change seldom, and are then not fetched again. Everything is pinned, with hashes.
COPY requirements.lock ./
RUN python -m venv .venv \
    && .venv/bin/python -m pip install --no-cache-dir --no-deps --require-hashes -r requirements.lock
COPY . .
RUN .venv/bin/python -m pip install --no-cache-dir --no-deps --no-build-isolation . \
    && .venv/bin/python -m compileall -q .venv/lib

# Nobody works as root: the learner owns a home, and nothing of the course.
RUN useradd --create-home --shell /bin/bash learner
USER learner
ENV PATH=/opt/batching/.venv/bin:$PATH \
    MY_LABS=/home/learner/my-labs
WORKDIR /home/learner

# On a hub: its side of the single-user server, of the hub's version (--build-arg JUPYTERHUB=5.4.0 for another one).
FROM course AS hub
ARG JUPYTERHUB=
USER root
RUN cd /opt/batching && if [ -n "$JUPYTERHUB" ]; \
    then .venv/bin/python -m pip install --no-cache-dir "jupyterhub==$JUPYTERHUB"; \
    else .venv/bin/python -m pip install --no-cache-dir --no-deps --require-hashes -r requirements-hub.lock; fi
USER learner
CMD ["course", "lab", "--"]

FROM course
VOLUME /home/learner
EXPOSE 8888

# From outside of the container only 0.0.0.0 can be reached; the token stays. What is written behind the image's name
# replaces the last two options: docker run ... batching --port=9000 --no-browser --ip=0.0.0.0
ENTRYPOINT ["course", "lab", "--"]
CMD ["--no-browser", "--ip=0.0.0.0", "--port=8888"]
