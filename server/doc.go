// Package server wires a whole twinsrv: a store of any kind, an actor
// system, the pods and their HTTP API, and its clean end.
//
// Main is the program, to which a binary of one's own adds typed pods. Run is
// the same without flags and signals, and Open the parts without a listener,
// for programs that feed data in-process. OpenStore opens a store alone.
package server
