# The coordinator and the worker in one image, of 37 MB and no shell. The two are
# static and have the data of time zones in them.
#
#   docker build -t ration .
#   docker run --rm ration coordinator --help
#
# A program that `worker exec` is to start comes from an image of its own:
#
#   COPY --from=ration /usr/local/bin/worker /usr/local/bin/

FROM golang:1.26-alpine AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false \
	-ldflags "-s -w -X ration/cmd/internal/cli.version=$VERSION" \
	-o /out/ ./cmd/coordinator ./cmd/worker ./integration/upstream/cmd/strictupstream && \
	go clean -cache

# The upstream of the trial in docker-compose.yml, which counts what breaks a contract.
FROM scratch AS upstream
COPY --from=build /out/strictupstream /usr/local/bin/
USER 65532:65532
EXPOSE 8080
CMD ["strictupstream", "--listen", "0.0.0.0:8080"]

FROM scratch AS ration
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/coordinator /out/worker /usr/local/bin/
USER 65532:65532
EXPOSE 8422
CMD ["coordinator"]
