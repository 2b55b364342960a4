// Package mutant holds deliberate faults of actor, persist, entity and pod. The
// simulation (internal/sim) must find each of them: that is how it is known to
// look at all.
//
// Without the build tag "mutants" On is false and inlined, so that nothing of
// the faults is in a program. With it, one fault is chosen for the process by
// the environment variable TWINSRV_MUTANT:
//
//	TWINSRV_MUTANT=ack-before-sync go test -tags mutants ./pod
//
// The places where a fault is built in ask for it by its constant:
//
//	if mutant.On(mutant.AckBeforeSync) { … }
package mutant
