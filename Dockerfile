# The service with its kernels compiled: `make image`, or any builder, from this folder.
#
# For x86-64. Kernels are compiled for the third level of it (AVX2 and FMA: Haswell, Zen and later)
# and, for older CPUs, for the first; kernels/target.py decides at start. Nothing is compiled then:
# the last step here fails the build when a fresh process finds a kernel missing.

FROM python:3.11-slim-bookworm AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src

# Of numpy and numba the tests go: 31 of 353 MB.
COPY requirements/build.txt requirements/service.txt requirements/
RUN pip install --require-hashes --only-binary :all: -r requirements/build.txt \
 && python -m venv --without-pip /opt/patchmill \
 && pip --python /opt/patchmill/bin/python install \
        --require-hashes --only-binary :all: -r requirements/service.txt \
 && find /opt/patchmill -depth -type d -name tests -exec rm -r {} +

COPY pyproject.toml README.md ./
COPY kernels kernels
COPY service service
RUN pip wheel --no-deps --no-build-isolation --no-index --wheel-dir /wheels . \
 && pip --python /opt/patchmill/bin/python install --no-deps --no-index /wheels/*.whl

# A cache of one kind of CPU for all of them: the key holds the build host's features unless they are told.
ENV PATH=/opt/patchmill/bin:$PATH \
    NUMBA_CACHE_DIR=/opt/patchmill/compiled \
    NUMBA_CPU_NAME=x86-64-v3 \
    NUMBA_CPU_FEATURES=+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe
RUN install -d -o 10001 -g 10001 /opt/patchmill/compiled
USER 10001:10001
RUN patchmill warm \
 && NUMBA_CPU_NAME=x86-64 NUMBA_CPU_FEATURES= patchmill warm


FROM python:3.11-slim-bookworm
ARG REVISION=unknown
LABEL org.opencontainers.image.title="patchmill" \
      org.opencontainers.image.description="Turns pictures into the patch tensors of vision-language models, over HTTP" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.base.name="docker.io/library/python:3.11-slim-bookworm"

# All of it is root's, the cache too: numba's caches are pickles, and the service only reads them.
COPY --from=build --chown=0:0 /opt/patchmill /opt/patchmill
ENV PATH=/opt/patchmill/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    NUMBA_CACHE_DIR=/opt/patchmill/compiled \
    NUMBA_CACHE_LOCATOR_CLASSES=kernels.shipped.ShippedCacheLocator \
    NUMBA_CPU_NAME=x86-64-v3 \
    NUMBA_CPU_FEATURES=+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe \
    PATCHMILL_HOST=0.0.0.0

# A number, so that Kubernetes' runAsNonRoot can tell. Any other user will do as well.
USER 10001:10001
RUN patchmill warm --cached simd \
 && NUMBA_CPU_NAME=x86-64 NUMBA_CPU_FEATURES= patchmill warm --cached portable

EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s --retries=3 CMD ["patchmill", "health"]
ENTRYPOINT ["patchmill"]
CMD ["serve"]
