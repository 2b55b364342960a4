#!/usr/bin/env bash
# fuzz.sh TIME  runs every fuzz target of the main module for TIME.
set -euo pipefail

time=${1:?how long each target runs, as in 20s}
go=${GO:-go}
found=0
while IFS=$'\t' read -r pkg dir; do
	for target in $(cat "$dir"/*_test.go | sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p'); do
		found=$((found + 1))
		echo "== $target in $pkg for $time"
		"$go" test "$pkg" -run '^$' -fuzz "^$target\$" -fuzztime "$time"
	done
done < <("$go" list -f $'{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}\t{{.Dir}}{{end}}' ./... | grep .)
echo "== $found fuzz targets ran"
