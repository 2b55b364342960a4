// Package modeltest drives pods over every store by random commands, faults,
// crashes and restarts, and compares what they show with a model that knows what
// was acknowledged: a state is always the fold of the acknowledged commands,
// with at most those in between whose outcome nobody was told. It has tests
// only.
//
// A failure prints how to run it again (-rapid.failfile or -rapid.seed). With
// the seeded executor, which most tests use, that gives the same run; `make
// model RAPID_CHECKS=2000` looks longer.
package modeltest
