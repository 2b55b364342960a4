// Package browsertest holds the explorer page against real servers in a real
// browser: a headless Chromium that is driven over its debugging protocol, and
// processes of examples/buildings and twinsrv that are killed and started again.
// It also draws the pictures of docs/images. It has tests only.
//
// Whatever a test does, the page must not write an error or a warning to the
// console, nor violate its Content-Security-Policy, nor ask another origin for
// anything: every tab has a witness that looks for that, and a test says
// beforehand which refusals of the server it is about to provoke.
//
// Without Chromium, and with BROWSER=0, the tests skip; where TWINSRV_REQUIRE
// lists chromium they fail without it.
package browsertest
