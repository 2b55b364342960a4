#!/usr/bin/env bash
# need.sh NAME...  makes sure that programs which some tests use are there.
#
# What is missing is installed by apt-get where that exists and the user is
# root, and every step is said. What stays missing is an error when it is
# listed in TWINSRV_REQUIRE; else its tests skip. BROWSER=0 leaves out chromium,
# which is large, unless TWINSRV_REQUIRE lists it.
set -euo pipefail

works() {
	case $1 in
	strace) strace -f -o /dev/null true >/dev/null 2>&1 ;;
	postgres) compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null ;;
	chromium) browser >/dev/null ;;
	*) command -v "$1" >/dev/null ;;
	esac
}

# browser is the Chromium that the tests drive, by the first of its names: the
# same ones as in internal/browsertest.
browser() {
	local name
	for name in chromium chromium-browser google-chrome google-chrome-stable; do
		command -v "$name" && return
	done
	return 1
}

required() { [[ ",${TWINSRV_REQUIRE:-}," == *",$1,"* ]]; }

# package is the Debian package that has a program.
package() {
	case $1 in
	postgres) echo postgresql ;;
	*) echo "$1" ;;
	esac
}

# size says of a large package how much is installed.
size() {
	case $1 in
	chromium) echo ", about 350 MB (BROWSER=0 does without)" ;;
	esac
}

# install prints why it could not, if it could not.
install() {
	if [[ $1 == strace ]] && command -v strace >/dev/null; then
		echo "strace is installed but does not work here (may this machine trace processes?)"
	elif [[ $(uname -s) != Linux ]]; then
		echo "$1 is for Linux only"
	elif ! command -v apt-get >/dev/null; then
		echo "$1 is not installed and there is no apt-get to install it with"
	elif [[ $(id -u) != 0 ]]; then
		echo "$1 is not installed; only root may: apt-get install $(package "$1")"
	else
		local wanted
		wanted=$(package "$1")
		echo "installing the package $wanted$(size "$1") by apt-get; some tests use it" >&2
		export DEBIAN_FRONTEND=noninteractive
		if ! { apt-get install -y -qq --no-install-recommends "$wanted" ||
			{ apt-get update -qq && apt-get install -y -qq --no-install-recommends "$wanted"; }; } >/dev/null 2>&1; then
			echo "apt-get could not install $wanted"
		elif ! works "$1"; then
			echo "$1 was installed but does not work here"
		fi
	fi
}

status=0
for name in "$@"; do
	if [[ $name == chromium && ${BROWSER:-} == 0 ]] && ! required chromium; then
		echo "BROWSER=0: the tests that drive a browser skip" >&2
		continue
	fi
	works "$name" && continue
	why=$(install "$name")
	[[ -z $why ]] && continue
	if required "$name"; then
		echo "missing: $why, and TWINSRV_REQUIRE=${TWINSRV_REQUIRE} asks for it" >&2
		status=1
	else
		echo "$why; the tests that need it skip" >&2
	fi
done
exit "$status"
