#!/usr/bin/env bash
# skips.sh LOG  lists the tests that the output of `go test -v` says were
# skipped, with their reasons, and fails if one lacked what TWINSRV_REQUIRE asks
# for: its reason says "needs NAME".
set -euo pipefail

log=${1:?the output of go test -v}
awk -v require="${TWINSRV_REQUIRE:-}" '
	/^=== (RUN|CONT|NAME) / { current = $3; next }
	/^ +[A-Za-z0-9_.-]+\.go:[0-9]+: / { said[current] = $0; sub(/^ +/, "", said[current]); next }
	/^ *--- SKIP: / {
		reason = said[$3] == "" ? "(no reason given)" : said[$3]
		printf "skipped: %s: %s\n", $3, reason
		skipped++
		n = split(require, names, ",")
		for (i = 1; i <= n; i++)
			if (names[i] != "" && reason ~ ("needs " names[i] "([^A-Za-z0-9_-]|$)")) {
				printf "  but TWINSRV_REQUIRE asks for %s\n", names[i]
				failed++
			}
	}
	/^(ok|FAIL|\?) / { delete said; current = "" }
	END {
		printf "%d skipped, %d of them required\n", skipped, failed
		exit failed > 0
	}' "$log"
