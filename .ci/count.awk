# Reads what `go test -json` writes and shows what `go test` would: a line for
# each package, and all that a failed test said. It ends with how many tests,
# subtests among them, passed, failed and were skipped, and appends the three
# numbers to the file `totals` if that is set.

function decoded(s) {
	gsub(/\\\\/, "\001", s)
	gsub(/\\n/, "\n", s); gsub(/\\t/, "\t", s); gsub(/\\r/, "", s); gsub(/\\"/, "\"", s)
	gsub(/\\u003c/, "<", s); gsub(/\\u003e/, ">", s); gsub(/\\u0026/, "\\&", s)
	gsub("\001", "\\", s)
	return s
}

# field gives a string of the object on this line, still encoded, or "".
function field(name,    at, rest, text, c) {
	at = index($0, "\"" name "\":\"")
	if (!at) return ""
	rest = substr($0, at + length(name) + 4)
	text = ""
	while (match(rest, /[\\"]/)) {
		c = substr(rest, RSTART, 1)
		if (c == "\"") return text substr(rest, 1, RSTART - 1)
		text = text substr(rest, 1, RSTART + 1)
		rest = substr(rest, RSTART + 2)
	}
	return text rest
}

!/^\{"/ { print; next }

{
	action = field("Action"); package = field("Package"); test = field("Test")
	key = package SUBSEP test
}

action == "build-output" { printf "%s", decoded(field("Output")) }

action == "output" && test != "" { said[key] = said[key] field("Output") }

action == "output" && test == "" {
	line = decoded(field("Output"))
	if (line !~ /^(PASS|FAIL)\n$/) printf "%s", line
}

action == "pass" && test != "" { passed++; delete said[key] }

action == "skip" && test != "" { skipped++; delete said[key] }

action == "fail" && test != "" {
	failed++; broken[package] = 1
	printf "%s", decoded(said[key]); delete said[key]
}

# A package can fail without a failed test: it does not build, or it ended in
# the middle of one.
action == "fail" && test == "" && !(package in broken) {
	failed++
	for (key in said) {
		split(key, of, SUBSEP)
		if (of[1] == package) printf "%s", decoded(said[key])
	}
}

END {
	printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
	if (totals) printf "%d %d %d\n", passed, failed, skipped >> totals
}
