// Package guide holds docs/http.md and docs/cli.md against a real server, and
// the Go code of the first against the examples of the package client. It has
// tests only.
package guide
