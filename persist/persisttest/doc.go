// Package persisttest holds what tests of stores, and tests on top of stores,
// need: one conformance suite for every implementation of
// persist.PersistenceService and its optional abilities (Run), a store in memory
// of which single values can be damaged (Memory, on a memory.Store), one that can
// lose what was not synced (CrashStore), and one that fails on demand
// (FaultStore).
//
// None of them starts goroutines or reads a clock, so that a seeded executor
// can drive them.
package persisttest
