// Package guide holds docs/http.md against a real server, and its Go code
// against the examples of the package client. It has tests only.
package guide
