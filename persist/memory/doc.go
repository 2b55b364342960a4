// Package memory keeps entities in memory: a persist.PersistenceService that
// forgets everything with the process. It is for trying things out, for pods
// whose entities need not outlive the program, and for tests.
//
// It keeps every promise of the port but the one of being durable. A commit
// costs as much as its units, whatever the store holds; pages of a listing are
// read where they begin. All that is kept are the encoded states, changes and
// rows, with about 100 bytes for each record, 200 for each change and 100 for
// each row besides their names. The journal grows until somebody trims it, as
// the committer does.
package memory
