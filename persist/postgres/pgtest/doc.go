// Package pgtest runs a real PostgreSQL server for tests and benchmarks: a
// throwaway cluster in a temporary folder, made with the binaries that the
// machine has, on a free port of the loopback interface. It can be restarted and
// killed, and its Proxy spoils the network to it.
//
// It does not depend on package testing: a test skips when Missing says why
// there can be no server.
package pgtest
