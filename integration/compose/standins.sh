#!/usr/bin/env bash
# Builds stand-ins for the images that the Dockerfile and docker-compose.yml name,
# under the same names, where they are not here and cannot be pulled: so that the
# files can be played as they are on a machine that reaches no registry of images.
#
#   golang:*  the Go that is here, with the modules of go.mod, compiled already, in
#             its caches
#   nats:*    nats-server as go.mod has it, built from its module
#   redis:*   redis-server of the system's package, which may be an older one
#
# Each has the shell and tools of busybox, as the real ones of Alpine have, and their
# entry point, default command, user and folders. They are for trials, nothing else.
# What is here already is left alone; a stand-in is built anew when what it is made
# of has changed. Needs Go and, for the packages that are missing, apt-get.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly label=ration.standin
readonly pull_patience=60 # seconds, for each image

scratch=$(mktemp -d "${TMPDIR:-/tmp}/ration-standins.XXXXXX")
trap 'chmod -R u+w "$scratch" && rm -rf "$scratch"' EXIT

say() { printf 'standins.sh: %s\n' "$*" >&2; }

# engine installs what is missing to talk to a Docker engine, and gives 1 if none
# answers.
engine() {
	if ! command -v docker >/dev/null && command -v apt-get >/dev/null; then
		local root=()
		((EUID == 0)) || root=(sudo -n)
		say "docker is missing: installing docker.io"
		"${root[@]}" apt-get -q update || true
		"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends docker.io >&2 || true
	fi
	command -v docker >/dev/null && timeout 20 docker info >/dev/null 2>&1 || return 1
	docker compose version >/dev/null 2>&1 || integration/install.sh docker-compose >/dev/null
}

# images gives the names of the images that this script can stand in for.
images() {
	awk '($1 == "FROM" || $1 == "image:") && $2 ~ /^(golang|nats|redis):/ { print $2 }' Dockerfile docker-compose.yml | sort -u
}

# made_of gives a digest of all that the stand-in for an image is made of.
made_of() {
	{
		declare -f base put entry import "${1%%:*}"
		case $1 in
		golang:*) go version && cat go.sum ;;
		nats:*) go version && go list -m github.com/nats-io/nats-server/v2 ;;
		redis:*) redis-server --version ;;
		esac
	} | sha256sum | cut -c1-16
}

# found writes the digest of the stand-in that is here under an image's name, nothing
# if the image is a real one, and gives 1 if there is none.
found() {
	docker image inspect --format "{{with .Config.Labels}}{{with index . \"$label\"}}{{.}}{{end}}{{end}}" "$1" 2>/dev/null
}

pull() { timeout "$pull_patience" docker pull -q "$1" >/dev/null 2>&1; }

# put copies programs into a root, each to where it is here, with the libraries that
# they are linked with and what their links lead to.
put() {
	local root=$1 program path
	shift
	for program; do
		path=$(PATH=$PATH:/usr/sbin:/sbin command -v "$program") || { say "$program is missing" && return 1; }
		{ printf '%s\n' "$path" && ldd "$path" 2>/dev/null | grep -oE '/[^ ]+' || true; } | while read -r path; do
			mkdir -p "$root$(dirname "$path")"
			cp -L "$path" "$root$path"
		done
	done
}

# base makes a root with a shell, users and folders, and gives its path.
base() {
	local root=$scratch/${1%%:*} applet busybox
	mkdir -p "$root"/{bin,etc/ssl/certs,root,usr/local/bin,usr/sbin,var} && mkdir -m 1777 "$root/tmp"
	put "$root" busybox
	busybox=$(command -v busybox)
	for applet in $(busybox --list); do
		[[ -e $root/bin/$applet ]] || ln -s "$busybox" "$root/bin/$applet"
	done
	printf 'root:x:0:0:root:/root:/bin/sh\nredis:x:999:1000:redis:/data:/bin/sh\n' >"$root/etc/passwd"
	printf 'root:x:0:\nredis:x:1000:\n' >"$root/etc/group"
	printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
	printf '%s\n' "$root"
}

# entry writes the entry point that the real images have: it reads its script from
# the standard input.
entry() {
	cat >"$1/usr/local/bin/docker-entrypoint.sh"
	chmod 755 "$1/usr/local/bin/docker-entrypoint.sh"
}

# import makes a root an image of this name and digest; each further argument is an
# instruction as in a Dockerfile.
import() {
	local image=$1 root=$3 old change changes=(--change "LABEL $label=$2")
	shift 3
	old=$(docker image inspect --format '{{.Id}}' "$image" 2>/dev/null || true)
	for change; do
		changes+=(--change "$change")
	done
	tar -C "$root" --owner 0 --group 0 --numeric-owner -c . |
		docker import "${changes[@]}" --message "stand-in for $image" - "$image" >/dev/null
	[[ -z $old ]] || docker rmi "$old" >/dev/null 2>&1 || true # a container may have it still
}

golang() {
	local root cache
	root=$(base "$1")
	mkdir -p "$root"/usr/local/go "$root"/go/{bin,src}
	tar -C "$(go env GOROOT)" --exclude=./test --exclude=./api --exclude=./doc -c . | tar -C "$root/usr/local/go" -x
	cache=$(go env GOMODCACHE)/cache/download
	GOMODCACHE=$root/go/pkg/mod GOPROXY=file://$cache,$(go env GOPROXY) GOFLAGS=-mod=readonly go mod download
	go list -deps -f '{{if not .Module}}{{.ImportPath}}{{else if not .Module.Main}}{{.ImportPath}}{{end}}' ./cmd/... |
		GOCACHE=$root/root/.cache/go-build CGO_ENABLED=0 xargs go build -trimpath
	cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" 2>/dev/null || : >"$root/etc/ssl/certs/ca-certificates.crt"
	import "$1" "$2" "$root" 'ENV GOPATH=/go' 'ENV GOTOOLCHAIN=local' \
		'ENV PATH=/go/bin:/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
		'WORKDIR /go' 'CMD ["sh"]'
}

nats() {
	local root
	root=$(base "$1")
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$root/usr/local/bin/nats-server" github.com/nats-io/nats-server/v2
	mkdir -p "$root/etc/nats"
	printf '%s\n' 'port: 4222' 'monitor_port: 8222' >"$root/etc/nats/nats-server.conf"
	entry "$root" <<-'END'
		#!/bin/sh
		set -e
		case $1 in -*) set -- nats-server "$@" ;; esac
		exec "$@"
	END
	import "$1" "$2" "$root" 'EXPOSE 4222 6222 8222' 'ENTRYPOINT ["docker-entrypoint.sh"]' \
		'CMD ["nats-server", "--config", "/etc/nats/nats-server.conf"]'
}

redis() {
	local root
	root=$(base "$1")
	put "$root" redis-server redis-cli setpriv
	ln -s redis-server "$root/usr/bin/redis-sentinel" # it goes by its name
	# The real one is built to serve strangers, as a container has to.
	printf '#!/bin/sh\nexec /usr/bin/redis-server "$@" --protected-mode no\n' >"$root/usr/local/bin/redis-server"
	chmod 755 "$root/usr/local/bin/redis-server"
	mkdir -p "$root/data"
	entry "$root" <<-'END'
		#!/bin/sh
		set -e
		case $1 in -* | *.conf) set -- redis-server "$@" ;; esac
		if [ "$1" = redis-server ] && [ "$(id -u)" = 0 ]; then
			find . ! -user redis -exec chown redis '{}' +
			exec setpriv --reuid=redis --regid=redis --clear-groups -- "$0" "$@"
		fi
		umask 0077
		exec "$@"
	END
	import "$1" "$2" "$root" 'EXPOSE 6379' 'VOLUME /data' 'WORKDIR /data' \
		'ENTRYPOINT ["docker-entrypoint.sh"]' 'CMD ["redis-server"]'
}

if ! engine; then
	say "no Docker engine answers here, so there is nothing to stand in for"
	exit 0
fi
for image in $(images); do
	if here=$(found "$image"); then
		[[ -n $here ]] || continue
	else
		! pull "$image" || continue
	fi
	integration/install.sh busybox >/dev/null
	[[ $image != redis:* ]] || integration/install.sh redis-server >/dev/null
	digest=$(made_of "$image")
	if [[ $here != "$digest" ]]; then
		say "building a stand-in for $image"
		"${image%%:*}" "$image" "$digest"
	fi
done
