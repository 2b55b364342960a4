// Package logtest has a disk in memory for tests and simulations of a commit
// log. It forgets at a crash what was not synced, and fails where it is told to.
//
// A process that dies is played by its disk: Kill and Crash return what the next
// process finds, and everything that the old one still calls fails. Kill is the
// end of the process alone; Crash is that of the machine. To let a process die
// in the middle of its work, have Disk.Fail return an error from some operation
// on, and call either once the process has given up.
//
// The package is for tests: nothing that serves imports it.
package logtest
