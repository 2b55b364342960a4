#!/usr/bin/env bash
# Prints, for each package of a coverage profile, the share of its statements
# that ran, and then each file's. A profile has a block once for every test
# binary.
set -euo pipefail

awk -F '[: ]' '
NR > 1 {
	n = split($1, path, "/")
	pkg = path[1]
	for (i = 2; i < n; i++) pkg = pkg "/" path[i]
	block = $1 ":" $2
	if (!(block in size)) { size[block] = $3; all[pkg] += $3; all[$1] += $3 }
	if ($4 > 0 && !(block in ran)) { ran[block] = 1; hit[pkg] += $3; hit[$1] += $3 }
}
END { for (p in all) printf "%5.1f%% of %5d  %s\n", 100 * hit[p] / all[p], all[p], p }
' "$1" | sort -k4
