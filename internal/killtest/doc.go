// Package killtest kills real processes, over and over, and compares what they
// acknowledged with what is there afterwards: a server that documents are
// written to, and accounts among which money is transferred, on every store. It
// has tests only.
//
// TWINSRV_KILLS is how many processes each test kills; without it they are few.
package killtest
