#!/usr/bin/env bash
# Installs the programs named, nginx or redis-server, from the system's packages of
# the same names, for the tests and benchmarks that play against them, where they
# are not there yet. Debian and its kin start a service when they install one: these
# are neither started nor begun at the next boot.
set -euo pipefail

found() { PATH=$PATH:/usr/sbin:/usr/local/sbin command -v "$1"; }

missing=()
for program; do
	found "$program" || missing+=("$program")
done
if ! ((${#missing[@]})); then
	exit 0
fi
if ! command -v apt-get >/dev/null; then
	echo "install.sh: ${missing[*]} missing, and this machine has no apt-get; install by its own means" >&2
	exit 1
fi
root=()
if ((EUID)); then
	root=(sudo -n)
	if ! sudo -n true 2>/dev/null; then
		echo "install.sh: ${missing[*]} missing, and only root may install; run apt-get install ${missing[*]} as root" >&2
		exit 1
	fi
fi

# What a package wants to start is asked for here; 101 is no. A machine that has
# such a file has decided by itself.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
	trap '"${root[@]}" rm -f "$policy"' EXIT
	printf '#!/bin/sh\nexit 101\n' | "${root[@]}" tee "$policy" >/dev/null
	"${root[@]}" chmod +x "$policy"
fi
apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q)
"${apt[@]}" update || echo "install.sh: going on with the lists of packages that are there" >&2
"${apt[@]}" install -y --no-install-recommends "${missing[@]}"
if [[ -d /run/systemd/system ]]; then
	"${root[@]}" systemctl disable "${missing[@]}"
fi
for program in "${missing[@]}"; do
	found "$program"
done
