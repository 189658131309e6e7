#!/usr/bin/env bash
# Plays everything that is claimed, at full length, with its figures. It takes hours,
# on a machine that has nothing else to do: ratios of times are judged. A part that
# fails hides no other; the end says which have failed, and the log of each is kept.
#
#   proof.sh [PART...]    all, or these
#
# It needs Go, make, git and bash, and a Docker engine for `compose`, which says so
# where there is none. What else is missing it installs, for which it needs apt-get and
# root or sudo.
set -euo pipefail
exec </dev/null
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. .ci/steps.sh

unset ${!RATION_*} ${!NATS_*} MAKEFLAGS MFLAGS MAKELEVEL
export CI=true # no test is skipped because something is not installed

# A name, and the words of a command.
readonly parts=(
	'run       make run'
	'bench     make bench'
	'peers     make bench-peers'
	'race      make race'
	'laws      full ./algo ./lease ./diskbackend ./redisbackend'
	'fuzz      make fuzz FUZZTIME=1m'
	'chained   go test ./integration/sim -count=1 -v -run TestChained'
	'sim       make sim SEEDS=2000'
	'mutants   make mutants'
	'system    full ./integration/system'
	'flood     full ./integration/flood'
	'nginx     full ./integration/nginx'
	'failover  full ./integration/failover'
	'compose   make compose-test'
)

# full runs tests in their full form.
full() { RATION_PROOF=1 go test "$@" -count=1 -v -timeout 3h; }

logged() { "${@:2}" 2>&1 | tee "$logs/$1.log"; }

# known gives 1 if there is no part of this name.
known() {
	local part
	for part in "${parts[@]}"; do
		[[ ${part%% *} != "$1" ]] || return 0
	done
	return 1
}

for name; do
	known "$name" || { printf 'proof.sh: there is no part %s; there are:%s\n' "$name" "$(printf ' %s' "${parts[@]%% *}")" >&2 && exit 2; }
done
logs=$(mktemp -d "${TMPDIR:-/tmp}/ration-proof.XXXXXX")

step install integration/install.sh nginx redis-server
for part in "${parts[@]}"; do
	read -r name command <<<"$part"
	if ((!$#)) || [[ " $* " == *" $name "* ]]; then
		step "$name" logged "$name" $command
	fi
done

outcome=0
verdict || outcome=1
printf 'logs are in %s\n' "$logs"
exit "$outcome"
