// Package patterns has ready-made ways of working with actors.
//
// CompletionService gives callers that are no actors, such as HTTP handlers,
// the answers of asks as futures: a bounded number of them, each of which ends.
package patterns
