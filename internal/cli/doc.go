// Package cli has the commands of twinsrv that talk to a running server, and
// what all commands of the program have in common: how they print, how they
// fail, and how a shell completes them.
//
// A command talks to a server through the package client alone. It returns its
// errors; the program prints them and exits with their ExitCode.
package cli
