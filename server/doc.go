// Package server wires a whole twinsrv: a store in a folder, an actor system,
// the pods and their HTTP API, and its clean end.
//
// Main is the program, to which a binary of one's own adds typed pods. Run is
// the same without flags and signals, and Open the parts without a listener,
// for programs that feed data in-process.
package server
