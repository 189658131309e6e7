# To be sourced: steps of which none hides what comes after it.

failures=()

# step runs a command under a name, says how it went and for how long, and goes on
# where it failed.
step() {
	local name=$1 began=$SECONDS outcome=ok
	shift
	printf '\n== %s: %s\n' "$name" "$*"
	"$@" || { outcome=FAILED; failures+=("$name"); }
	printf '== %s: %s in %d s\n' "$name" "$outcome" $((SECONDS - began))
}

# verdict names the steps that failed, and gives 1 if there are any.
verdict() {
	printf '\n'
	if ((${#failures[@]})); then
		printf 'failed: %s\n' "${failures[*]}"
		return 1
	fi
}
