#!/usr/bin/env bash
# Installs nginx from the system's packages, for the tests in this folder, where
# it is not there yet. Debian and its kin start a service when they install it:
# this one is neither started nor begun at the next boot.
set -euo pipefail

found() { PATH=$PATH:/usr/sbin:/usr/local/sbin command -v nginx; }

if found >/dev/null; then
	"$(found)" -v
	exit 0
fi
if ! command -v apt-get >/dev/null; then
	echo "install.sh: nginx is missing, and this machine has no apt-get; install nginx by its own means" >&2
	exit 1
fi
root=()
if ((EUID)); then
	root=(sudo -n)
	if ! sudo -n true 2>/dev/null; then
		echo "install.sh: nginx is missing, and only root may install it; run apt-get install nginx as root" >&2
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
"${apt[@]}" install -y --no-install-recommends nginx
if [[ -d /run/systemd/system ]]; then
	"${root[@]}" systemctl disable nginx
fi
"$(found)" -v
